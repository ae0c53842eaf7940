package check

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// tracker looks at every transition.
type tracker interface {
	observe(transition int, before, now []float64, i info)
	report(*Report)
}

// moves checks Info against what the particles do.
type moves struct {
	c                          *chains
	outside, notBinary, unlike int
	oddCounts, lost            int
}

func (m *moves) observe(_ int, before, now []float64, i info) {
	d := m.c.d
	for j := range m.c.j {
		moved := false
		for k := j * d; k < (j+1)*d; k++ {
			moved = moved || now[k] != before[k]
			if math.IsNaN(now[k]) || math.IsInf(now[k], 0) {
				m.lost++
			}
		}
		if a := i[acceptance]; a != nil && !(a[j] >= 0 && a[j] <= 1) {
			m.outside++
		}
		if a := i[accepted]; a != nil {
			if a[j] != 0 && a[j] != 1 {
				m.notBinary++
			}
			if moved != (a[j] != 0) {
				m.unlike++
			}
		}
		if n := i[nonFinite]; n != nil && n[j] != 0 && n[j] != 1 {
			m.oddCounts++
		}
	}
}

func (m *moves) report(r *Report) {
	r.exact("all", "Phi: coordinates that are not finite", m.lost)
	for _, name := range m.c.gives {
		switch name {
		case acceptance:
			r.exact("all", "Info.Acceptance: values outside [0, 1]", m.outside)
		case accepted:
			r.exact("all", "Info.Accepted: values other than 0 and 1", m.notBinary)
			r.exact("all", "Info.Accepted: moves that are not counted, or counted without a move", m.unlike)
		case nonFinite:
			r.exact("all", "Info.NonFinite: values other than 0 and 1", m.oddCounts)
		}
	}
}

// balance tests exchangeability. If x is from the target and the kernel takes x to y in detailed balance, (x, y) and
// (y, x) have one distribution. So f(x, y) - f(y, x) has mean 0 for every f. f is bounded, in the uniforms u of x and v
// of y. The first transitions of a chain are summed up.
type balance struct {
	c     *chains
	data  []float64
	last  map[int][][]float64 // by block: the uniforms before the transition
	sums  map[int][][]float64 // by block: [function][particle]
	first int                 // transitions that are looked at
	names []string            // of the functions
	f     []func(u, v []float64) float64
}

func newBalance(c *chains, phi, data []float64) *balance {
	b := &balance{c: c, data: data, last: map[int][][]float64{}, sums: map[int][][]float64{}, first: 10}
	for k := range c.d {
		b.names = append(b.names, fmt.Sprintf("coordinate %d", k+1), fmt.Sprintf("width of coordinate %d", k+1))
		b.f = append(b.f,
			func(u, v []float64) float64 { return u[k] * u[k] * v[k] },
			func(u, v []float64) float64 { return math.Abs(u[k]-.5) * math.Abs(v[k]-.5) * math.Abs(v[k]-.5) })
		for i := range k {
			b.names = append(
				b.names, fmt.Sprintf("coordinates %d and %d", i+1, k+1), fmt.Sprintf("coordinate %d and width of %d", i+1, k+1),
			)
			b.f = append(b.f,
				func(u, v []float64) float64 { return u[i] * v[k] },
				func(u, v []float64) float64 { return u[i] * math.Abs(v[k]-.5) })
		}
	}
	for n, block := range c.blocks {
		if block.kind == farStart {
			continue
		}
		block.to = block.independent()
		b.last[n] = c.uniforms(block, phi, data)
		b.sums[n] = make([][]float64, len(b.f))
		for i := range b.f {
			b.sums[n][i] = make([]float64, block.to-block.from)
		}
	}
	return b
}

func (b *balance) observe(transition int, _, now []float64, _ info) {
	if transition > b.first {
		return
	}
	for n, block := range b.c.blocks {
		if block.kind == farStart {
			continue
		}
		block.to = block.independent()
		u, v := b.last[n], b.c.uniforms(block, now, b.data)
		for i, f := range b.f {
			for j := range u {
				b.sums[n][i][j] += f(u[j], v[j]) - f(v[j], u[j])
			}
		}
		b.last[n] = v
	}
}

func (b *balance) report(r *Report) {
	for n, block := range b.c.blocks {
		for i, sums := range b.sums[n] {
			s, p := zTest(sums, 0)
			r.add(block.Name, "balance: "+b.names[i], s, p)
		}
	}
}

// ranks is the rank test of Gandy and Scott (2021, "Unit testing for MCMC and other Monte Carlo methods", section 3). A
// parameter theta drawn from the prior, with data drawn given theta, is an exact draw of the posterior. A path under
// that posterior has L + 1 places, and theta is put at a random one, M. L - M transitions follow it. M transitions from
// it in a second chain go before it, since in detailed balance the past looks like the future. Then the path is
// stationary, theta's place in it is uniform, and so is the rank of any function of theta among the path's: for every
// L, however slowly the chain mixes.
type ranks struct {
	c       *chains
	length  int // L
	r       *rand.Rand
	blocks  []rankBlock
	names   []string
	f       []func(x []float64) float64
	started []float64
}

type rankBlock struct {
	block
	place       []int   // M of each pair of chains
	below, ties [][]int // [function][pair]
}

func newRanks(c *chains, r *rand.Rand, phi []float64, length int) *ranks {
	t := &ranks{c: c, length: length, r: r, started: phi}
	for k := range c.d {
		t.names = append(t.names, fmt.Sprintf("coordinate %d", k+1))
		t.f = append(t.f, func(x []float64) float64 { return x[k] })
	}
	if c.d > 1 {
		t.names = append(t.names, "product of the first two coordinates")
		t.f = append(t.f, func(x []float64) float64 { return x[0] * x[1] })
	}
	for _, b := range c.blocks {
		if b.kind != twinStart {
			continue
		}
		rb := rankBlock{block: b}
		pairs := (b.to - b.from) / 2
		for range pairs {
			rb.place = append(rb.place, r.IntN(length+1))
		}
		for range t.f {
			rb.below, rb.ties = append(rb.below, make([]int, pairs)), append(rb.ties, make([]int, pairs))
		}
		t.blocks = append(t.blocks, rb)
	}
	return t
}

func (t *ranks) observe(transition int, _, now []float64, _ info) {
	d := t.c.d
	for _, b := range t.blocks {
		pairs := len(b.place)
		for j := b.from; j < b.to; j++ {
			pair := (j - b.from) % pairs
			last := b.place[pair]
			if j-b.from >= pairs {
				last = t.length - last
			}
			if transition > last {
				continue
			}
			for i, f := range t.f {
				switch theta, here := f(t.started[j*d:(j+1)*d]), f(now[j*d:(j+1)*d]); {
				case here < theta:
					b.below[i][pair]++
				case here == theta:
					b.ties[i][pair]++
				}
			}
		}
	}
}

func (t *ranks) report(r *Report) {
	for _, b := range t.blocks {
		for i := range t.f {
			values := make([]int, len(b.place))
			for pair := range values { // ties are broken at random
				values[pair] = b.below[i][pair] + t.r.IntN(b.ties[i][pair]+1)
			}
			s, p := rankTest(values, t.length)
			r.add(b.Name, "rank: "+t.names[i], s, p)
		}
	}
}
