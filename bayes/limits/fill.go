package limits

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Row is the default and the bounds of one field of settings.
type Row interface {
	fill()
	check() Limit
}

// Fill fills in the default of each row whose field is zero, and returns an error that names the first field out of
// bounds, its value and what it must be; nil if there is none. The owner names the settings, such as
// "baseline: VI". Defaults are filled in before anything is checked, in the rows' order. Go reads a row's arguments
// before Fill runs: where a default or a bound is another field's value that a row fills in, it needs a Fill after that
// one.
//
//	err := limits.Fill("svgd: SVGD",
//		limits.Int("Particles", &a.Particles, 100).From(2),
//		limits.Float("StepSize", &a.StepSize, .01).Positive())
func Fill(owner string, rows ...Row) error {
	for _, r := range rows {
		r.fill()
	}
	for _, r := range rows {
		if err := Check(owner, r.check()); err != nil {
			return err
		}
	}
	return nil
}

func (l Limit) fill()        {}
func (l Limit) check() Limit { return l }

// Number is a numeric field of settings. Each of its methods adds a bound and returns the row.
type Number[T ~int | ~float64] struct {
	field     string
	value     *T
	byDefault T
	zero      string // what 0 means; empty if it means nothing
	bounds    []bound[T]
	also      []T // values outside the bounds that are taken
	or        string
	because   string
}

// bound is one end of what a number must be in.
type bound[T any] struct {
	ok    func(T) bool
	want  string
	upper bool
}

// Int is an int. Its default, if one is given, is filled in where it is 0.
func Int(field string, value *int, byDefault ...int) *Number[int] {
	return number(field, value, byDefault)
}

// Float is a float64. NaN is outside of every bound; an infinity is too, but where only an upper bound is given.
func Float(field string, value *float64, byDefault ...float64) *Number[float64] {
	return number(field, value, byDefault)
}

func number[T ~int | ~float64](field string, value *T, byDefault []T) *Number[T] {
	n := &Number[T]{field: field, value: value}
	if len(byDefault) > 0 && byDefault[0] != 0 {
		n.byDefault, n.zero = byDefault[0], fmt.Sprint(byDefault[0])
	}
	return n
}

// Zero says what 0 means to the method, which then takes it whatever the bounds.
func (n *Number[T]) Zero(means string) *Number[T] {
	n.zero = means
	n.also = append(n.also, 0)
	return n
}

// Or is a value that is taken whatever the bounds, with the name of its constant, such as "mcmc.NoWarmUp".
func (n *Number[T]) Or(value T, name string) *Number[T] {
	n.also = append(n.also, value)
	n.or += ", or " + name
	if n.zero != "" && value == n.byDefault {
		n.zero = name
	}
	return n
}

// Because ends what the error says of the bounds, such as "to which a Gaussian is fitted".
func (n *Number[T]) Because(why string) *Number[T] {
	n.because = ", " + why
	return n
}

// From is at least the given number.
func (n *Number[T]) From(least T) *Number[T] {
	return n.bound(false, fmt.Sprintf("at least %v", least), func(v T) bool { return v >= least })
}

// Above is more than the given number.
func (n *Number[T]) Above(low T) *Number[T] {
	return n.bound(false, fmt.Sprintf("above %v", low), func(v T) bool { return v > low })
}

// Positive is above 0.
func (n *Number[T]) Positive() *Number[T] {
	return n.bound(false, "positive", func(v T) bool { return v > 0 })
}

// To is at most the given number.
func (n *Number[T]) To(most T) *Number[T] {
	return n.bound(true, fmt.Sprintf("at most %v", most), func(v T) bool { return v <= most })
}

// Between is from the first number to the second, both taken.
func (n *Number[T]) Between(least, most T) *Number[T] {
	return n.bound(true, fmt.Sprintf("from %v to %v", least, most), func(v T) bool { return v >= least && v <= most })
}

// Inside is above the first number and below the second.
func (n *Number[T]) Inside(low, high T) *Number[T] {
	return n.Above(low).bound(true, fmt.Sprintf("below %v", high), func(v T) bool { return v < high })
}

func (n *Number[T]) bound(upper bool, want string, ok func(T) bool) *Number[T] {
	n.bounds = append(n.bounds, bound[T]{ok, want, upper})
	return n
}

func (n *Number[T]) fill() {
	if *n.value == 0 {
		*n.value = n.byDefault
	}
}

func (n *Number[T]) check() Limit {
	v, bounds := *n.value, n.bounds
	if _, float := any(v).(float64); float && !slices.ContainsFunc(bounds, func(b bound[T]) bool { return b.upper }) {
		bounds = append(bounds, bound[T]{want: "finite", ok: func(v T) bool { return !math.IsInf(float64(v), 1) }})
	}
	ok := true
	var wants []string
	for _, b := range bounds {
		ok = ok && b.ok(v)
		wants = append(wants, b.want)
	}
	want := strings.Join(wants, " and ") + n.or + n.because
	if n.zero != "" {
		want += fmt.Sprintf(" (0: %s)", n.zero)
	}
	return Field(n.field, v, ok || slices.Contains(n.also, v), want)
}

// choice is a field that must be one of a few values.
type choice[T comparable] struct {
	field     string
	value     *T
	byDefault T
	known     []T
}

// Choice is a field that must be one of the known values; the default is filled in where it has its zero value.
func Choice[T comparable](field string, value *T, byDefault T, known ...T) Row {
	return choice[T]{field, value, byDefault, known}
}

func (c choice[T]) fill() {
	if *c.value == *new(T) {
		*c.value = c.byDefault
	}
}

func (c choice[T]) check() Limit {
	want := ""
	for i, k := range c.known {
		switch {
		case i > 0 && i == len(c.known)-1:
			want += " or "
		case i > 0:
			want += ", "
		}
		want += fmt.Sprintf("%q", fmt.Sprint(k))
	}
	return Field(c.field, *c.value, slices.Contains(c.known, *c.value), want)
}
