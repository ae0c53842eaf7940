package dataset

import (
	"errors"
	"fmt"
)

// NoColumnError is the error for a column that an option names and the table does not have.
type NoColumnError struct {
	Name string // as the option has it
	error
}

// mostFaults is the number of faults that an error lists.
const mostFaults = 10

// joined is one error that lists all; nil of none.
func joined(all []error) error {
	switch {
	case len(all) == 0:
		return nil
	case len(all) == 1:
		return all[0]
	case len(all) > mostFaults:
		all = append(all[:mostFaults:mostFaults], fmt.Errorf("and %d more", len(all)-mostFaults))
	}
	return fmt.Errorf("several things must be mended\n%w", errors.Join(all...))
}
