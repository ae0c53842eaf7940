package limits

import "strings"

// mostNearest is the greatest number of names that Nearest returns.
const mostNearest = 5

// Nearest returns the names that a mistyped name may stand for: the names that contain it, or else the ones that are
// the fewest letters away.
func Nearest(name string, of []string) []string {
	var found []string
	least := -1
	for _, other := range of {
		switch d := distance(name, other); {
		case len(name) > 2 && strings.Contains(strings.ToLower(other), strings.ToLower(name)):
			if least != 0 {
				found, least = nil, 0
			}
			found = append(found, other)
		case least < 0 || d < least:
			found, least = []string{other}, d
		case d == least:
			found = append(found, other)
		}
	}
	return found[:min(len(found), mostNearest)]
}

// distance is the number of letters to insert, leave out or replace between two names (Levenshtein's), with small and
// capital letters the same.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1) // from a's beginning so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
