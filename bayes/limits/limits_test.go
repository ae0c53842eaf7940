package limits

import "testing"

func TestCheck(t *testing.T) {
	fields := func(n int) []Limit {
		return []Limit{Field("Draws", n, n >= 1, "at least 1"), Field("Thin", n, n <= 5, "at most 5")}
	}
	for n, want := range map[int]string{0: "a: B.Draws is 0: it must be at least 1",
		6: "a: B.Thin is 6: it must be at most 5", 3: "<nil>"} {
		got := "<nil>"
		if err := Check("a: B", fields(n)...); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// Numbers refuses what no memory holds, also where the product of the dimensions is more than an int.
func TestNumbers(t *testing.T) {
	for n, refused := range map[int]bool{1 << 20: false, 1 << 37: false, 1 << 40: true, 1 << 62: true} {
		if err := Check("a: B", Numbers("Draws", n, n, 2)); (err != nil) != refused {
			t.Errorf("%d by 2: %v", n, err)
		}
	}
}
