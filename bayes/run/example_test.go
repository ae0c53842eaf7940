package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// newton finds the square root of 2: x <- (x + 2/x) / 2, six times.
type newton struct {
	Made int     `json:"made"`
	X    float64 `json:"x"`
}

const all = 6

func (n *newton) Identity() ([]run.Part, error) { return []run.Part{{Name: "number", Value: "2"}}, nil }

func (n *newton) Adopt(head json.RawMessage, _ map[string]*tensors.Tensor) error {
	var was newton
	if err := json.Unmarshal(head, &was); err != nil {
		return err
	}
	if was.Made < 0 || was.Made > all || !(was.X > 0) {
		return fmt.Errorf("it has made %d of %d steps and stands at %v", was.Made, all, was.X)
	}
	*n = was
	return nil
}

func (n *newton) Begin(context.Context) error { return nil }

func (n *newton) Step(context.Context) error {
	n.Made, n.X = n.Made+1, (n.X+2/n.X)/2
	return nil
}

func (n *newton) Status() run.Status {
	if n.Made == all {
		return run.Completed
	}
	return ""
}

func (n *newton) Keep() (any, map[string]*tensors.Tensor, error) { return n, nil, nil }

func (n *newton) Progress() run.Progress {
	return run.Progress{Step: n.Made, Steps: all, Scores: []run.Score{{Name: "x", Value: n.X}}}
}

// A machine of one's own, stopped in the middle and gone on with from its checkpoint.
func ExampleRun() {
	folder, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	options := run.Options{Owner: "newton", Checkpoint: filepath.Join(folder, "state"), Format: "newton/1",
		Every: time.Minute}

	ctx, cancel := context.WithCancel(context.Background())
	watched := run.Watched(ctx, func(now run.Progress, _ run.Machine) {
		fmt.Printf("step %d of %d: %.6f\n", now.Step, now.Steps, now.Score("x"))
		if now.Step == 2 {
			cancel()
		}
	})
	first := run.New(&newton{X: 1}, options)
	if err := first.Loop(watched); err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Status())

	machine := &newton{X: 1}
	second := run.New(machine, options)
	if err := second.Loop(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s after %d steps: %.6f\n", second.Status(), machine.Made, machine.X)
	// Output:
	// step 1 of 6: 1.500000
	// step 2 of 6: 1.416667
	// cancelled
	// completed after 6 steps: 1.414214
}
