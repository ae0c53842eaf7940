package shards

import (
	"fmt"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
)

// BenchmarkQuestion is a question to a shard of 10 000 rows, float32, after its programs are compiled.
func BenchmarkQuestion(b *testing.B) { computetest.Bench(b, benchmarkQuestion) }

func benchmarkQuestion(b *testing.B, engine *compute.Engine) {
	network := line
	network.Network = nn.MLP{Hidden: []int{50, 20}, Activation: nn.Tanh}
	for name, model := range map[string]bayes.Model{"line": line, "network": network} {
		shard, err := New(model, fittest.Data(10_000), compute.Float32, engine)
		if err != nil {
			b.Fatal(err)
		}
		defer shard.Close()
		for _, q := range []Request{{Chains: 4, Batches: 20, BatchSize: 25}, {Chains: 100, Batches: 20, BatchSize: 25},
			{Chains: 4, Batches: 10, BatchSize: 5000}} {
			for i := range q.Chains * shard.(*local).bound.D {
				q.From, q.To = append(q.From, 0), append(q.To, .01*float64(i%7))
			}
			b.Run(fmt.Sprintf("%s/J=%d/M=%d/n=%d", name, q.Chains, q.Batches, q.BatchSize), func(b *testing.B) {
				if _, err := shard.Differences(b.Context(), q); err != nil { // compiles
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := shard.Differences(b.Context(), q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
