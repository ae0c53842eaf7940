package practice

import (
	"compress/bzip2"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/notebooks/tested"
)

// The sizes are those of the packages that ship the tables.
var want = map[string][3]int{ // rows, features with text as one-hot, classes
	"cars": {804, 17}, "deliveries": {10012, 36}, "diabetes": {442, 10}, "epa": {1108, 70}, "meats": {215, 100},
	"nhefs": {1550, 19}, "credit": {1000, 61, 2}, "digits": {1797, 61, 10}, "hpc": {4331, 26, 4}, "ames": {2930, 121},
	"biomass": {536, 5}, "checks": {13626, 23}, "cpus": {209, 6}, "penguins": {333, 11}, "sacramento": {932, 45},
	"contraceptive": {1473, 9, 3}, "taxi": {10000, 22, 2}, "vehicle": {846, 18, 4}, "airfoil": {1503, 5},
	"bikesharing": {17379, 12}, "boston": {506, 13}, "concrete": {1030, 8}, "energy": {768, 8}, "kin8nm": {8192, 8},
	"naval": {11934, 14}, "power": {9568, 4}, "protein": {45730, 9}, "wine_red": {1599, 11}, "yacht": {308, 6},
}

func TestTables(t *testing.T) {
	text := tested.Must(os.ReadFile("data/SOURCES.md"))
	halves := map[Half]int{}
	for _, table := range Tables {
		halves[table.Half]++
		d := tested.Must(table.Load())
		if targets, rows := d.Leaks(); targets != nil || rows != nil { // honest tables, some of physics
			t.Errorf("%s: a false alarm: %v %v", d.Name, targets, rows)
		}
		got := [3]int{d.Rows(), d.Dims(), len(d.Classes)}
		if got != want[table.Name] || d.Task != table.Task || d.Name != table.Name {
			t.Errorf("%s: got %v, %v, want %v, %v", d.Name, got, d.Task, want[table.Name], table.Task)
		}
		parts, err := table.Split(1)
		if err == nil {
			err = parts.Validate()
		}
		if err != nil {
			t.Fatalf("%s: %v", table.Name, err)
		}
		wantPartition(t, d.Rows(), parts)
		if table.Half != Reported && !strings.Contains(string(text), sum(t, table.Name)) {
			t.Errorf("%s: SOURCES.md has another sha256 than %s", table.Name, sum(t, table.Name))
		}
	}
	if halves[Choose] != 9 || halves[Confirm] != 9 || halves[Reported] != 11 {
		t.Errorf("got %v", halves)
	}
}

// wantPartition is an error if the parts do not have each row once.
func wantPartition(t *testing.T, rows int, parts dataset.Parts) {
	t.Helper()
	seen := map[int]int{}
	for _, part := range []*dataset.Dataset{parts.Train, parts.Validation, parts.Test} {
		for i := range part.Rows() {
			seen[part.OriginalRow(i)]++
		}
	}
	for i := range rows {
		if seen[i] != 1 {
			t.Fatalf("%s: row %d is in %d parts", parts.Train.Name, i, seen[i])
		}
	}
}

func sum(t *testing.T, name string) string {
	f := tested.Must(files.Open("data/" + name + ".csv.bz2"))
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, bzip2.NewReader(f)); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestUnknownTable(t *testing.T) {
	if _, err := (Table{Name: "rosebud"}).Split(1); err == nil || !strings.Contains(err.Error(), "rosebud") {
		t.Errorf("got %v", err)
	}
}

// TestPeers: each method has its scores on each split, once, but for Gal's, which were not computed.
func TestPeers(t *testing.T) {
	peers := tested.Must(LoadPeers())
	type key struct {
		data, method string
		split        uint64
	}
	scores := map[key]PeerScore{}
	for _, row := range peers.Rows {
		scores[key{row.Data, row.Method, row.Split}] = row
	}
	if len(scores) != len(peers.Rows) {
		t.Errorf("%d rows have %d scores", len(peers.Rows), len(scores))
	}
	for _, table := range Tables {
		if table.Half == Reported && table.Published == dataset.Gal {
			continue
		}
		for _, method := range []string{"catboost", "ngboost", "random_forest", "linear"} {
			for _, split := range Splits {
				s, ok := scores[key{table.Name, method, split}]
				regression := s.RMSE > 0 && s.CRPS > 0 && s.Coverage90 > 0 && s.Accuracy == 0
				if !ok || s.NLPD == 0 || regression != (table.Task == dataset.Regression) || !regression && s.Brier == 0 {
					t.Errorf("%s, %s, split %d: %+v", table.Name, method, split, s)
				}
			}
		}
	}
	if peers.Versions["catboost"] == "" {
		t.Errorf("got versions %v", peers.Versions)
	}
}
