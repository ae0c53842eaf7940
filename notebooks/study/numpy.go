package study

import (
	"math"
	"math/bits"
)

// numpyNormals are the normals of numpy.random.default_rng(seed), draw by draw, so that data made in Python can be
// made again from their seed: PCG64 (O'Neill 2014, XSL-RR output) seeded by numpy's SeedSequence, and normals by its
// ziggurat of 256 layers (Marsaglia and Tsang 2000; Doornik 2005).
type numpyNormals struct {
	state, increment uint128
	zig              *ziggurat
}

type uint128 struct{ high, low uint64 }

func (a uint128) plus(b uint128) uint128 {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return uint128{high, low}
}

func (a uint128) times(b uint128) uint128 {
	high, low := bits.Mul64(a.low, b.low)
	return uint128{high + a.high*b.low + a.low*b.high, low}
}

// newNumpyNormals is default_rng(seed).
func newNumpyNormals(seed uint64) *numpyNormals {
	words := seedSequence(seed)
	r := &numpyNormals{zig: newZiggurat()}
	sequence := uint128{words[2], words[3]}
	r.increment = uint128{sequence.high<<1 | sequence.low>>63, sequence.low<<1 | 1}
	r.step()
	r.state = r.state.plus(uint128{words[0], words[1]})
	r.step()
	return r
}

func (r *numpyNormals) step() {
	r.state = r.state.times(uint128{2549297995355413924, 4865540595714422341}).plus(r.increment)
}

func (r *numpyNormals) next() uint64 {
	r.step()
	return bits.RotateLeft64(r.state.high^r.state.low, -int(r.state.high>>58))
}

func (r *numpyNormals) uniform() float64 { return float64(r.next()>>11) / (1 << 53) }

// seedSequence are the first four words of SeedSequence(seed).generate_state(4, uint64).
func seedSequence(seed uint64) (words [4]uint64) {
	entropy := []uint32{uint32(seed)}
	if high := uint32(seed >> 32); high != 0 {
		entropy = append(entropy, high)
	}
	constant := uint32(0x43b0d7e5)
	hash := func(v uint32, multiplier uint32) uint32 {
		v ^= constant
		constant *= multiplier
		v *= constant
		return v ^ v>>16
	}
	const inPool, outOfPool = 0x931e8875, 0x58f38ded
	var pool [4]uint32
	for i := range pool {
		if i < len(entropy) {
			pool[i] = hash(entropy[i], inPool)
		} else {
			pool[i] = hash(0, inPool)
		}
	}
	for from := range pool {
		for to := range pool {
			if from != to {
				v := 0xca01f9dd*pool[to] - 0x4973f715*hash(pool[from], inPool)
				pool[to] = v ^ v>>16
			}
		}
	}
	constant = 0x8b51f9dd
	for i := range 8 {
		words[i/2] |= uint64(hash(pool[i%4], outOfPool)) << (32 * (i % 2))
	}
	return words
}

// ziggurat are the tables of the layers: within them a point is under the curve without a logarithm.
type ziggurat struct {
	within [256]uint64
	width  [256]float64
	height [256]float64
}

// tail is where the lowest layer ends.
const tail = 3.6541528853610087963519472518

func newZiggurat() *ziggurat {
	const scale = 1 << 52
	density := func(x float64) float64 { return math.Exp(-x * x / 2) }
	area := tail*density(tail) + math.Sqrt(math.Pi/2)*math.Erfc(tail/math.Sqrt2)
	z := &ziggurat{}
	x, above := tail, tail
	lowest := area / density(tail)
	z.within[0], z.within[1] = uint64(x/lowest*scale), 0
	z.width[0], z.width[255] = lowest/scale, x/scale
	z.height[0], z.height[255] = 1, density(x)
	for i := 254; i >= 1; i-- {
		x = math.Sqrt(-2 * math.Log(area/x+density(x)))
		z.within[i+1] = uint64(x / above * scale)
		above = x
		z.height[i], z.width[i] = density(x), x/scale
	}
	return z
}

// normal is the next standard normal.
func (r *numpyNormals) normal() float64 {
	for {
		word := r.next()
		layer := word & 0xff
		word >>= 8
		size := word >> 1 & (1<<52 - 1)
		x := float64(size) * r.zig.width[layer]
		if word&1 == 1 {
			x = -x
		}
		switch {
		case size < r.zig.within[layer]:
			return x
		case layer == 0:
			for {
				beyond := -math.Log1p(-r.uniform()) / tail
				if y := -math.Log1p(-r.uniform()); y+y > beyond*beyond {
					if size>>8&1 == 1 {
						return -(tail + beyond)
					}
					return tail + beyond
				}
			}
		case (r.zig.height[layer-1]-r.zig.height[layer])*r.uniform()+r.zig.height[layer] < math.Exp(-x*x/2):
			return x
		}
	}
}

// normals are the next so many.
func (r *numpyNormals) normals(n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = r.normal()
	}
	return all
}
