package dataset_test

import (
	"fmt"
	"log"
	"strings"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

// From a table to the first mini-batch: split, standardise by the training part, batch.
func Example() {
	data := dataset.MustLoad("yacht")
	fmt.Println(data.Title, data.Rows(), "x", data.Dims(), "->", data.Target)

	parts, err := data.Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("train, validation, test:", parts.Train.Rows(), parts.Validation.Rows(), parts.Test.Rows())

	features := dataset.FitScaler(parts.Train.X)
	test, err := features.Apply(parts.Test.X)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("standardised test features:", test.RawMatrix().Rows, "x", test.RawMatrix().Cols)

	batches, err := dataset.NewBatches(parts.Train.Rows(), 20, 0)
	if err != nil {
		log.Fatal(err)
	}
	last := batches.At(batches.PerEpoch() - 1)
	fmt.Println("batches an epoch:", batches.PerEpoch(), "- real rows in the last:", last.Count, "of", len(last.Rows))
	// Output:
	// Yacht hydrodynamics 308 x 6 -> residuary_resistance
	// train, validation, test: 185 92 31
	// standardised test features: 31 x 6
	// batches an epoch: 10 - real rows in the last: 5 of 20
}

// A user's own table, with a categorical column, a missing value and a label.
func ExampleReadCSV() {
	text := `age;smoker;ill
61;yes;sick
35;no;well
?;no;well
`
	data, err := dataset.ReadCSV(strings.NewReader(text), dataset.CSVOptions{
		Delimiter: ';', Target: "ill", Task: dataset.BinaryClassification, Categorical: []string{"smoker"},
		Missing: dataset.MissingMean,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(data)

	_, err = dataset.ReadCSV(strings.NewReader("age,dose\n61,1.5\nold,2\n"), dataset.CSVOptions{})
	fmt.Println(strings.NewReplacer("; ", ";\n", ", or", ",\nor").Replace(err.Error()))
	// Output:
	// csv: 3 rows, 3 features, binary classification of ill, 2 classes: sick, well
	// row  age  smoker=no  smoker=yes   ill
	//   0   61          0           1  sick
	//   1   35          1           0  well
	//   2   48          1           0  well
	//
	// dataset: row 1 (line 3), column "age": cannot read "old" as a number;
	// list the text in CSVOptions.MissingTokens if it stands for no value,
	// or list the column in CSVOptions.Categorical or CSVOptions.Ignore,
	// or leave the row out if it is a footer
}

// New rows for a model that was trained on a table: without the target, with columns in another order, one of them
// unknown, and a missing value. Their X has the columns of the table, in its order, and goes into Posterior.Predict.
func ExampleCSVOptions_like() {
	train, err := dataset.ReadCSV(strings.NewReader(`age,smoker,town,ill
61,yes,Oulu,sick
35,no,Lund,well
27,no,Oulu,well
`), dataset.CSVOptions{
		Target: "ill", Task: dataset.BinaryClassification, Categorical: []string{"smoker", "town"},
	})
	if err != nil {
		log.Fatal(err)
	}

	rows, err := dataset.ReadCSV(strings.NewReader("name,town,age,smoker\nAda,Lund,50,yes\nBo,Lund,?,no\n"),
		dataset.CSVOptions{Like: train, Missing: dataset.MissingMean}) // the mean age of train
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows.Features)
	for i := range rows.Rows() {
		fmt.Println(rows.X.(*mat.Dense).RawRowView(i))
	}
	fmt.Println("targets:", len(rows.Y))

	one := "age,smoker,town\n50,yes,Rome\n" // a single row
	_, err = dataset.ReadCSV(strings.NewReader(one), dataset.CSVOptions{Like: train})
	fmt.Println(strings.NewReplacer(": ", ":\n", " and set", "\nand set").Replace(err.Error()))
	// Output:
	// [age smoker=no smoker=yes town=Lund town=Oulu]
	// [50 0 1 1 0]
	// [41 1 0 1 0]
	// targets: 0
	// dataset:
	// row 0 (line 2), column "town":
	// a category is absent from the training part:
	// "Rome" is none of Like's categories ["Lund" "Oulu"]:
	// leave out its rows, train with some, or list it in CSVOptions.MissingTokens
	// and set CSVOptions.Missing to MissingMean
}

// The split that others report on, row for row.
func ExampleDataset_PublishedSplit() {
	data := dataset.MustLoad("boston")
	parts, err := data.PublishedSplit(dataset.Gal, 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts.Train.Rows(), parts.Test.Rows())

	_, err = data.PublishedSplit(dataset.PMCnet, 0)
	fmt.Println(err)
	// Output:
	// 455 51
	// dataset boston: there is no PMCnet split 0; there is Gal, index 0 to 19; Javid, index 0 to 9
}
