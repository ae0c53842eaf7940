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

// Check returns an error that names the first field that is outside its limit; nil if there is none. The owner is whose
// fields they are, such as "baseline: VI".
func Check(owner string, limits ...Limit) error {
	for _, l := range limits {
		if !l.ok {
			return fmt.Errorf("%s.%s is %v: it must be %s", owner, l.field, l.value, l.want)
		}
	}
	return nil
}
