// Package limits makes the errors for settings that are out of bounds: they name the setting, its value and what it
// must be.
package limits

import "fmt"

// Limit is a setting and what it must keep to.
type Limit struct {
	field string
	value any
	ok    bool
	want  string
}

// Field is a setting by its field's name; ok says whether its value keeps to what is wanted, such as "at least 1".
func Field(field string, value any, ok bool, want string) Limit {
	return Limit{field, value, ok, want}
}

// mostNumbers is the largest number of numbers of one kind in memory, a terabyte: for more there is no room, and the
// program would end at once, or panic.
const mostNumbers = 1 << 38

// Numbers is a setting that decides how many numbers of one kind are in memory at once: as many as a tensor of the
// given dimensions has.
func Numbers(field string, value any, dims ...int) Limit {
	numbers := 1.
	for _, d := range dims {
		numbers *= float64(d)
	}
	return Limit{field, value, numbers <= mostNumbers, fmt.Sprintf("fewer, since %v are %.2g numbers in memory", dims,
		numbers)}
}

// Check returns an error that names the first field that is outside its limit; nil if there is none. The owner names
// the settings, such as "baseline: VI".
func Check(owner string, limits ...Limit) error {
	for _, l := range limits {
		if !l.ok {
			return fmt.Errorf("%s.%s is %v: it must be %s", owner, l.field, l.value, l.want)
		}
	}
	return nil
}
