package fit

// Of is of, for tests.
var Of = of
