package viz_test

import "testing"

func BenchmarkPNG(b *testing.B) {
	for _, s := range gallery() {
		fig, err := s.make()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := fig.PNG(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
