package shards_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/pbnn/shards"

	"gonum.org/v1/gonum/mat"
)

// The owner of the rows serves them, and no question about fewer than 5 of them is answered.
func ExampleServe() {
	// At the owner's.
	xs := mat.NewDense(50, 1, nil)
	data := &dataset.Dataset{
		Name: "ours", Task: dataset.Regression, Features: []string{"x"}, Target: "y",
		X: xs, Y: make([]float64, 50),
	}
	for i := range data.Y {
		xs.Set(i, 0, float64(i)/25-1)
		data.Y[i] = .5 * xs.At(i, 0)
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .1}, Stochastic: bayes.All()}
	shard, err := shards.New(model, data, 0, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer shard.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- shards.Serve(listener, shard) }()

	// At the sampler's.
	ctx := context.Background()
	address := listener.Addr().String()
	remote := shards.Dial(address)
	q := shards.Request{Batches: 4, BatchSize: 10, Chains: 1, From: []float64{0, 0}, To: []float64{.5, 0}}
	answer, err := remote.Differences(ctx, q)
	fmt.Println(len(answer.Values), "differences, all better:", answer.Values[0] > 0, err)
	q.BatchSize = 1
	_, err = remote.Differences(ctx, q)
	fmt.Println(strings.TrimPrefix(err.Error(), address+": "))

	remote.Close()
	listener.Close()
	fmt.Println(<-ended)
	// Output:
	// 4 differences, all better: true <nil>
	// shards: the question is refused: its mini-batches have 1 rows, and must have at least 5
	// <nil>
}
