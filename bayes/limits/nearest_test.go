package limits

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"ohsmc.table1", "ohsmc.table8", "ohsmc.fig5", "fbnn.tableA1", "quickstart"}
	for name, want := range map[string]string{
		"ohsmc.tabel8": "ohsmc.table8", "ohsmc.fig": "ohsmc.fig5", "FIG5": "ohsmc.fig5", "quikstart": "quickstart",
		"fbnn.table1": "fbnn.tableA1", "table": "ohsmc.table1 ohsmc.table8 fbnn.tableA1",
		"ohsmc.table9": "ohsmc.table1 ohsmc.table8",
	} {
		if got := strings.Join(Nearest(name, known), " "); got != want {
			t.Errorf("nearest to %q: %q, want %q", name, got, want)
		}
	}
	if got := distance("kitten", "sitting"); got != 3 {
		t.Errorf("distance %d, want 3", got)
	}
}
