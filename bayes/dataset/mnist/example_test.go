package mnist_test

import (
	"fmt"
	"log"

	"gobnn/bayes/dataset/mnist"
)

func ExampleTest() {
	test, err := mnist.Test()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(test.Title, test.Rows(), "x", test.Dims())
	two, err := test.Subset([]int{1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a", two.Classes[int(two.Y[0])])
	for row := 2; row < mnist.Side-6; row += 2 {
		for column := 4; column < mnist.Side-4; column++ {
			if two.X.At(0, row*mnist.Side+column) > .5 {
				fmt.Print("#")
			} else {
				fmt.Print(".")
			}
		}
		fmt.Println()
	}
	// Output:
	// MNIST handwritten digits, test part 10000 x 784
	// a 2
	// ....................
	// .....########.......
	// ....###....###......
	// ..........###.......
	// .........###........
	// .......####.........
	// ......####..........
	// .....####...........
	// ....###.............
	// ....################
}
