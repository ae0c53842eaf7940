package viz_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gobnn/viz"
)

func ExamplePredictiveBand() {
	var x, mean, stdDev []float64
	for i := range 100 {
		v := -3 + 6*float64(i)/99
		x, mean, stdDev = append(x, v), append(mean, math.Sin(v)), append(stdDev, 0.1+0.05*v*v)
	}
	fig, err := viz.PredictiveBand(x, mean, stdDev, viz.BandOptions{
		Frame:  viz.Frame{XLabel: "time [s]", YLabel: "angle [rad]"},
		TrainX: []float64{-1, 0, 1}, TrainY: []float64{-0.8, 0.1, 0.9},
		True: math.Sin,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	folder, err := os.MkdirTemp("", "figures")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	fmt.Println(fig.Save(filepath.Join(folder, "band.png")))
	fmt.Println(fig.Save(filepath.Join(folder, "band.gif")) != nil)
	// Output:
	// <nil>
	// true
}

func ExampleNewLattice() {
	lattice, err := viz.NewLattice(-2, 2, 3, 0, 1, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	features := lattice.Points() // what a model predicts from
	for row := range len(features) / 2 {
		p := 1 / (1 + math.Exp(-features[2*row]))
		lattice.Values = append(lattice.Values, p)
	}
	_, err = viz.DecisionMap(lattice, viz.DecisionOptions{})
	fmt.Println(len(features)/2, "points,", "error:", err)
	// Output:
	// 6 points, error: <nil>
}
