package run

import (
	"fmt"
	"math"
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

// ReadRecords reads what Records has written. It is an error if their number is not the one given, or if a count or a
// truth value is none.
func ReadRecords[R any](kept map[string]*tensors.Tensor, name string, count int) ([]R, error) {
	of := reflect.TypeFor[R]()
	rows, err := Rows(kept, name, count, of.NumField())
	if err != nil {
		return nil, err
	}
	records := make([]R, len(rows))
	for k, row := range rows {
		r := reflect.ValueOf(&records[k]).Elem()
		for i, x := range row {
			if !setNumber(r.Field(i), x) {
				return nil, fmt.Errorf("its tensor %q has %v as %s of record %d", name, x, of.Field(i).Name, k)
			}
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

// setNumber sets a field to the number that it had, and says whether it can have had it.
func setNumber(v reflect.Value, x float64) bool {
	switch {
	case v.CanInt():
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return false
		}
		v.SetInt(int64(x))
	case v.Kind() == reflect.Bool:
		if x != 0 && x != 1 {
			return false
		}
		v.SetBool(x == 1)
	default:
		v.SetFloat(x)
	}
	return true
}
