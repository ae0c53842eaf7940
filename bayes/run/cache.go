package run

// of values that hold a function
