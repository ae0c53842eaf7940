package dataset

import (
	"strconv"
	"strings"
)

// parseNumber reads a decimal number. Go's other notations, "1_10" for 110 and "0x1p3" for 8, are text: in a table they
// are codes.
func parseNumber(text string) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

func isNumber(text string) bool {
	_, err := parseNumber(text)
	return err == nil
}

// whole is "1" for "1.", "1.0", "1.00", and the text itself if it is not a whole number with a point. Programs write
// whole numbers with a point once a value of the column is missing.
func whole(text string) string {
	before, after, _ := strings.Cut(text, ".")
	if strings.Trim(after, "0") == "" && isDigits(before) {
		return before
	}
	return text
}

// isDigits says whether a text is digits alone, or a minus and digits.
func isDigits(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
