package study

// As a cell of a notebook does, the code of a study ends at its first error: must and failOn panic with it, and what
// lists trials, runs a repetition or draws a figure returns it by caught.

type failure struct{ error }

// must returns the value unless there is an error.
func must[T any](value T, err error) T {
	failOn(err)
	return value
}

func failOn(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// caught sets the error that must or failOn ended a function with. Defer it.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}
