package solve

import "slices"

// relax packs fractions of nodes: a linear program with a column for each largest set of blocks that a node of a class
// can have.
//
//	maximise  the copies of blocks that are placed, at most as many as are needed
//	subject   copies of a block ≤ the nodes that have it;  nodes of a class ≤ those there are
//
// Without a solution that places all there is no packing. Otherwise the whole nodes of the solution are a good
// beginning: relax returns them, and what they leave to pack. It reports false if the program is too large.
func (s *solver) relax(classes []class, need []int) (
	rest []class, left []int, whole []placement, solved bool,
) {
	var active set
	var wanted []int
	total := 0
	for b, n := range need {
		if n > 0 {
			active.add(b)
			wanted = append(wanted, b)
			total += n
		}
	}
	type column struct {
		class  int
		blocks set
	}
	const most = 400
	var columns []column
	for i := range classes {
		order := slices.DeleteFunc(slices.Clone(wanted), func(b int) bool {
			return !s.fits(&classes[i], classes[i].base, b)
		})
		if classes[i].n == 0 || len(order) == 0 {
			continue
		}
		tooMany := s.choices(&classes[i], order, func(blocks set) bool {
			columns = append(columns, column{i, blocks.minus(classes[i].base)})
			return len(columns) > most
		})
		if tooMany {
			return nil, nil, nil, false
		}
	}
	*s.effort -= 100
	// Variables: columns, then copies of blocks. Rows: blocks (copies ≤ nodes), blocks (copies ≤ need), classes.
	k, w := len(columns), len(wanted)
	p := newSimplex(2*w+len(classes), k+w)
	for j, c := range columns {
		for i, b := range wanted {
			if c.blocks.has(b) {
				p.set(i, j, -1)
			}
		}
		p.set(2*w+c.class, j, 1)
	}
	for i, b := range wanted {
		p.set(i, k+i, 1)
		p.set(w+i, k+i, 1)
		p.limit(w+i, float64(need[b]))
		p.gain(k+i, 1)
	}
	for i := range classes {
		p.limit(2*w+i, float64(classes[i].n))
	}
	best, values, ok := p.solve()
	if !ok {
		return nil, nil, nil, false
	}
	if best < float64(total)-1e-4 {
		return nil, nil, nil, true
	}
	rest, left = slices.Clone(classes), slices.Clone(need)
	for j, c := range columns {
		n := min(int(values[j]+1e-6), rest[c.class].n)
		if n == 0 {
			continue
		}
		rest[c.class].n -= n
		whole = append(whole, placement{c.class, c.blocks, n})
		for b := range c.blocks.all {
			left[b] = max(left[b]-n, 0)
		}
	}
	return rest, left, whole, true
}

// simplex maximises a linear function of variables that are not negative, under upper limits that are not negative
// either, so that zeroes are a solution to begin with.
type simplex struct {
	rows  [][]float64 // coefficients of variables and slacks, and the limit
	goal  []float64
	basis []int
	n     int
}

func newSimplex(rows, variables int) *simplex {
	p := &simplex{n: variables, goal: make([]float64, variables+rows+1), basis: make([]int, rows)}
	for i := range rows {
		row := make([]float64, variables+rows+1)
		row[variables+i] = 1
		p.rows = append(p.rows, row)
		p.basis[i] = variables + i
	}
	return p
}

func (p *simplex) set(row, variable int, v float64) { p.rows[row][variable] = v }
func (p *simplex) limit(row int, v float64)         { p.rows[row][len(p.goal)-1] = v }
func (p *simplex) gain(variable int, v float64)     { p.goal[variable] = -v }

// solve returns the best value and the variables; false if it took too long.
func (p *simplex) solve() (float64, []float64, bool) {
	const tiny = 1e-9
	last := len(p.goal) - 1
	for round := range 3000 {
		enter := -1
		for j := range last {
			if p.goal[j] >= -tiny {
				continue
			}
			if enter < 0 || round < 500 && p.goal[j] < p.goal[enter] { // later the first, which cannot go in circles
				enter = j
			}
		}
		if enter < 0 {
			values := make([]float64, p.n)
			for i, b := range p.basis {
				if b < p.n {
					values[b] = p.rows[i][last]
				}
			}
			return p.goal[last], values, true
		}
		leave, best := -1, 0.0
		for i, row := range p.rows {
			if row[enter] <= tiny {
				continue
			}
			ratio := row[last] / row[enter]
			if leave < 0 || ratio < best-tiny || ratio < best+tiny && p.basis[i] < p.basis[leave] {
				leave, best = i, ratio
			}
		}
		if leave < 0 {
			return 0, nil, false // without limits, which cannot be
		}
		p.pivot(leave, enter)
	}
	return 0, nil, false
}

func (p *simplex) pivot(leave, enter int) {
	row := p.rows[leave]
	by := row[enter]
	for j := range row {
		row[j] /= by
	}
	clear := func(other []float64) {
		if f := other[enter]; f != 0 {
			for j, v := range row {
				if v != 0 {
					other[j] -= f * v
				}
			}
		}
	}
	for i := range p.rows {
		if i != leave {
			clear(p.rows[i])
		}
	}
	clear(p.goal)
	p.basis[leave] = enter
}
