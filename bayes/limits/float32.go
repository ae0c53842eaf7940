package limits

// Float32 is the largest absolute value of a standardised number in float32, whose largest is 3e38: a sum of a hundred
// squares of 1e18 is below that, the square of 1e20 is infinite.
const Float32 = 1e18
