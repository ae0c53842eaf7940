package viz

// contour gives the level line of a field: marching squares with linear interpolation on the lattice's edges, whose
// segments are joined into the longest lines. A cell with a non-finite corner has no segment.
func (f Field) contour(level float64) []polyline {
	// A crossing is named by its edge: 2*node for the edge to the right of a node, 2*node+1 for the one above it.
	nx := len(f.X)
	var segments [][2]int
	for j := range len(f.Y) - 1 {
		for i := range nx - 1 {
			corners := [4]float64{f.at(i, j), f.at(i+1, j), f.at(i+1, j+1), f.at(i, j+1)}
			sum, whole := 0.0, true
			for _, v := range corners {
				whole = whole && finite(v)
				sum += v
			}
			if !whole {
				continue
			}
			node := j*nx + i
			edges := [4]int{2 * node, 2*(node+1) + 1, 2 * (node + nx), 2*node + 1} // bottom, right, top, left
			var crossed []int
			for k := range 4 {
				if (corners[k] >= level) != (corners[(k+1)%4] >= level) {
					crossed = append(crossed, edges[k])
				}
			}
			switch len(crossed) {
			case 2:
				segments = append(segments, [2]int{crossed[0], crossed[1]})
			case 4: // a saddle: the mean of the corners decides which two corners are cut off
				if (sum/4 >= level) == (corners[0] >= level) {
					segments = append(segments, [2]int{crossed[0], crossed[1]}, [2]int{crossed[2], crossed[3]})
				} else {
					segments = append(segments, [2]int{crossed[3], crossed[0]}, [2]int{crossed[1], crossed[2]})
				}
			}
		}
	}
	return f.join(segments, level)
}

// join links segments that end on the same edge. Open lines come first, from one end to the other, then closed ones.
func (f Field) join(segments [][2]int, level float64) []polyline {
	touching := make(map[int][]int, len(segments)) // an edge belongs to at most two segments
	for s, ends := range segments {
		for _, e := range ends {
			touching[e] = append(touching[e], s)
		}
	}
	used := make([]bool, len(segments))
	follow := func(s, from int) polyline {
		var l polyline
		add := func(edge int) {
			x, y := f.crossing(edge, level)
			l.xs, l.ys = append(l.xs, x), append(l.ys, y)
		}
		add(from)
		for {
			used[s] = true
			next := segments[s][0]
			if next == from {
				next = segments[s][1]
			}
			add(next)
			from = next
			found := false
			for _, t := range touching[from] {
				if !used[t] {
					s, found = t, true
				}
			}
			if !found {
				return l
			}
		}
	}
	var lines []polyline
	for s, ends := range segments {
		for _, e := range ends {
			if !used[s] && len(touching[e]) == 1 {
				lines = append(lines, follow(s, e))
			}
		}
	}
	for s, ends := range segments {
		if !used[s] {
			lines = append(lines, follow(s, ends[0]))
		}
	}
	return lines
}

// crossing is the point on an edge where the field, interpolated linearly, equals the level.
func (f Field) crossing(edge int, level float64) (x, y float64) {
	node, up := edge/2, edge%2 == 1
	i, j := node%len(f.X), node/len(f.X)
	a := f.at(i, j)
	if up {
		t := (level - a) / (f.at(i, j+1) - a)
		return f.X[i], f.Y[j] + t*(f.Y[j+1]-f.Y[j])
	}
	t := (level - a) / (f.at(i+1, j) - a)
	return f.X[i] + t*(f.X[i+1]-f.X[i]), f.Y[j]
}
