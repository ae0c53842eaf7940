package dataset

import (
	"fmt"
	"math"
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

// whole is "1" for "1.", "1.0", "1.00", "true" for "TRUE" and "True", and else the text itself. Programs write whole
// numbers with a point once a value of the column is missing.
func whole(text string) string {
	before, after, _ := strings.Cut(text, ".")
	if strings.Trim(after, "0") == "" && isDigits(before) {
		return before
	}
	return boolOf(text)
}

// plainText is a number as people write it: without an exponent, unless it is very large or small.
func plainText(v float64) string {
	if size := math.Abs(v); size >= 1e21 || size < 1e-6 && size > 0 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// isDigits says whether a text is digits alone, or a minus and digits.
func isDigits(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isPadded says whether a text is digits with leading zeros, as of a code: "01234" is another one than "1234".
func isPadded(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return len(digits) > 1 && digits[0] == '0' && isDigits(digits)
}

// exactly is the same text for texts of the same number, also for long ones that are equal as float64: its digits
// without zeros around them, and an exponent. It is the text itself if that is no number, or has leading zeros.
func exactly(text string) string {
	if !isNumber(text) || isPadded(text) {
		return text
	}
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(text), "e")
	before, after, _ := strings.Cut(strings.TrimLeft(mantissa, "+-"), ".")
	power := 0
	if scaled {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil { // below any float64
			return text
		}
	}
	if !isDigits(before + after) { // inf or nan
		return text
	}
	digits := strings.TrimLeft(before+after, "0")
	if digits == "" {
		return "0"
	}
	sign := ""
	if mantissa[0] == '-' {
		sign = "-"
	}
	short := strings.TrimRight(digits, "0")
	return fmt.Sprintf("%s%se%d", sign, short, power-len(after)+len(digits)-len(short))
}

// exact is the largest number up to which float64 holds all whole numbers.
const exact = 1 << 53

// spell is an error if a number of the column was written differently in a row before, and one of the texts is a code:
// digits with leading zeros, or beyond the whole numbers that float64 holds exactly. Two codes would become one.
func (c *column) spell(v float64, text string) error {
	isCode := isPadded(text) || math.Abs(v) >= exact && isDigits(text)
	if c.spelled == nil && !isCode {
		return nil
	}
	if c.spelled == nil {
		c.spelled = map[float64]string{}
		for _, before := range c.values {
			if !math.IsNaN(before) {
				c.spelled[before] = ""
			}
		}
	}
	code := ""
	if isCode {
		code = strings.Clone(text) // a copy, so that it does not keep its record in memory
	}
	before, seen := c.spelled[v]
	if !seen || before == code {
		c.spelled[v] = code
		return nil
	}
	if before == "" {
		before = strconv.FormatFloat(v, 'f', -1, 64)
	}
	why := ""
	if math.Abs(v) >= exact {
		why = ", since whole numbers beyond 2^53 are rounded"
	}
	cure := "list the column in Categorical or Ignore"
	if c.target {
		cure = "set Task to Classification"
	}
	return fmt.Errorf("%.40q and, in a row before, %.40q are one number%s: if they are codes, %s; if they are numbers, "+
		"write both alike", text, before, why, cure)
}
