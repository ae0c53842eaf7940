package run

import (
	"reflect"

	"github.com/gomlx/gomlx/core/tensors"
)

// Records makes a tensor of a run's records for a checkpoint, as Table does: a row for each, and a column for each
// field of the struct R, in its order. Fields are numbers, or truth values.
func Records[R any](records []R) *tensors.Tensor {
	width := reflect.TypeFor[R]().NumField()
	rows := make([]float64, 0, len(records)*width)
	for _, r := range records {
		v := reflect.ValueOf(r)
		for i := range width {
			rows = append(rows, number(v.Field(i)))
		}
	}
	return Table(rows, width)
}

// ReadRecords reads what Records has written. It is an error if their number is not the one given.
func ReadRecords[R any](kept map[string]*tensors.Tensor, name string, count int) ([]R, error) {
	rows, err := Rows(kept, name, count, reflect.TypeFor[R]().NumField())
	if err != nil {
		return nil, err
	}
	records := make([]R, len(rows))
	for k, row := range rows {
		r := reflect.ValueOf(&records[k]).Elem()
		for i, x := range row {
			setNumber(r.Field(i), x)
		}
	}
	return records, nil
}

// number is a field as a number.
func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			return 1
		}
		return 0
	}
	return v.Float() // panics for what is no number
}

// setNumber sets a field to the number that it had.
func setNumber(v reflect.Value, x float64) {
	switch {
	case v.CanInt():
		v.SetInt(int64(x))
	case v.Kind() == reflect.Bool:
		v.SetBool(x != 0)
	default:
		v.SetFloat(x)
	}
}
