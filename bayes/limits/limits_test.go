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
