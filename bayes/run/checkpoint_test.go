package run

import "testing"

// The error about a checkpoint of other settings shows only the fields that differ, also within nested objects.
func TestDifference(t *testing.T) {
	for _, c := range []struct{ a, b, old, now string }{
		{"3", "4", "3", "4"},
		{`{"draws":3,"seed":1}`, `{"draws":3,"seed":2}`, `{"seed":1}`, `{"seed":2}`},
		{`{"k":{"type":"A","step":1}}`, `{"k":{"type":"B","step":1}}`, `{"k":{"type":"A"}}`, `{"k":{"type":"B"}}`},
		{`{"old":1}`, `{"now":1}`, `{"old":1}`, `{"now":1}`},
		{`{"x":null}`, `{"x":{"y":1}}`, `{"x":null}`, `{"x":{"y":1}}`},
		{"text", `{"x":1}`, "text", `{"x":1}`},
	} {
		if old, now := difference(c.a, c.b); old != c.old || now != c.now {
			t.Errorf("difference(%s, %s) is %s, %s; want %s, %s", c.a, c.b, old, now, c.old, c.now)
		}
	}
}
