package practice

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed peers.json
var peersFile []byte

// Peers are what other packages score on the test rows of the same splits; peers.py makes them.
type Peers struct {
	Versions map[string]string // of the packages
	Rows     []PeerScore
}

// PeerScore is what one method scores on one split. A regression is scored in units of the training target's standard
// deviation (of a reported table: over all rows that are not for the test), each prediction being one normal.
type PeerScore struct {
	Data   string
	Split  uint64
	Method string // catboost, ngboost, random_forest or linear
	NLPD   float64
	// Of a regression:
	RMSE, CRPS, Coverage90 float64
	// Of a classification; Brier is the squared distance of the probabilities from the label's, summed over the classes.
	Accuracy, Brier float64
	// Seconds of fitting and predicting, on two cores that other programs used too.
	Seconds float64
}

// LoadPeers reads the recorded scores.
func LoadPeers() (p Peers, err error) {
	if err := json.Unmarshal(peersFile, &p); err != nil {
		return p, fmt.Errorf("practice: peers.json: %w", err)
	}
	return p, nil
}
