package limits

import (
	"fmt"
	"math"
	"testing"
)

// Fill fills in what is zero before it checks, and says what a field must be.
func TestFill(t *testing.T) {
	type settings struct {
		Particles, Moves, WarmUp int
		StepSize, Rate           float64
		Kind                     string
	}
	good := settings{100, 0, 5, .01, .5, "full"}
	fill := func(s *settings) error {
		return Fill("a: B",
			Int("Particles", &s.Particles, 100).Between(2, 1000),
			Int("Moves", &s.Moves).Zero("as many as needed").From(1),
			Int("WarmUp", &s.WarmUp, 5).From(1).Or(-1, "a.NoWarmUp").Because("which adapts"),
			Float("StepSize", &s.StepSize, .01).Positive(),
			Float("Rate", &s.Rate, .5).Above(0).To(1),
			Choice("Kind", &s.Kind, "full", "diagonal", "full"),
			Field("Kind", s.Kind, s.Kind != "diagonal" || s.Moves == 0, "full with Moves"))
	}
	var zero settings
	if err := fill(&zero); err != nil || zero != good {
		t.Errorf("%+v: %v", zero, err)
	}
	for _, c := range []struct {
		change func(*settings)
		want   string
	}{
		{func(s *settings) { s.WarmUp = -1 },
			""},
		{func(s *settings) { s.Particles = 1 },
			"Particles is 1: it must be from 2 to 1000 (0: 100)"},
		{func(s *settings) { s.Moves = -2 },
			"Moves is -2: it must be at least 1 (0: as many as needed)"},
		{func(s *settings) { s.WarmUp = -3 },
			"WarmUp is -3: it must be at least 1, or a.NoWarmUp, which adapts (0: 5)"},
		{func(s *settings) { s.StepSize = -1 },
			"StepSize is -1: it must be positive and finite (0: 0.01)"},
		{func(s *settings) { s.StepSize = math.Inf(1) },
			"StepSize is +Inf: it must be positive and finite (0: 0.01)"},
		{func(s *settings) { s.StepSize = math.NaN() },
			"StepSize is NaN: it must be positive and finite (0: 0.01)"},
		{func(s *settings) { s.Rate = 2 },
			"Rate is 2: it must be above 0 and at most 1 (0: 0.5)"},
		{func(s *settings) { s.Rate = math.NaN() },
			"Rate is NaN: it must be above 0 and at most 1 (0: 0.5)"},
		{func(s *settings) { s.Kind = "x" },
			`Kind is x: it must be "diagonal" or "full"`},
		{func(s *settings) { s.Kind, s.Moves = "diagonal", 1 },
			"Kind is diagonal: it must be full with Moves"},
	} {
		s := good
		c.change(&s)
		got, wanted := fmt.Sprint(fill(&s)), "a: B."+c.want
		if c.want == "" {
			wanted = "<nil>"
		}
		if got != wanted {
			t.Errorf("%s, want %s", got, wanted)
		}
	}
}
