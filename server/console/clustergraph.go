package console

import (
	"net/url"
	"slices"
	"strconv"

	"ordain.dev/ordain/internal/intent"
)

// clusterGraph is the graph of the steps of a job, laid out in columns: a step stands to the right of all that it waits
// for. A step is one action of one service, on all nodes. When there are many steps, those of a column share a box.
type clusterGraph struct {
	Job    int
	JobURL string
	Width  int
	Height int
	Boxes  []graphBox
	Lines  []graphLine
	Folded bool
}

// graphBox is a step. X and Y are its upper left corner.
type graphBox struct {
	Name   string
	Title  string // the name, as much as there is room for
	Stage  int    // from 1
	State  state
	Done   int
	Total  int
	Failed int
	After  []string
	URL    string
	X, Y   int
}

// The places of what a box shows.
func (b graphBox) ShapeX() int { return b.X + 9 }
func (b graphBox) ShapeY() int { return b.Y + 16 }
func (b graphBox) TextX() int  { return b.X + 28 }
func (b graphBox) NameY() int  { return b.Y + 18 }
func (b graphBox) NoteY() int  { return b.Y + 34 }

// graphLine is a curve from a box to another one.
type graphLine struct {
	X1, Y1, X2, Y2, XM int
}

// Sizes of the picture.
const (
	boxWidth, boxHeight = 138, 44
	gapX, gapY          = 20, 12
	marginX, marginY    = 4, 4
	titleRunes          = 14
)

// maxBoxes is how many steps the graph shows one by one.
const maxBoxes = 40

// setStages gives each step the length of the longest way to it. Steps in a circle, which no plan has, come last.
func setStages(groups []stepGroup) {
	open := make([]int, len(groups))
	after := make([][]int, len(groups))
	var ready []int
	for i, g := range groups {
		open[i] = len(g.before)
		for _, j := range g.before {
			after[j] = append(after[j], i)
		}
		if open[i] == 0 {
			ready = append(ready, i)
		}
	}
	last := 0
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		last = max(last, groups[i].stage)
		for _, j := range after[i] {
			groups[j].stage = max(groups[j].stage, groups[i].stage+1)
			if open[j]--; open[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	for i := range groups {
		if open[i] > 0 {
			groups[i].stage = last + 1
		}
	}
}

// graphOf lays out the graph of a job.
func graphOf(at string, j intent.ClusterJob, groups []stepGroup) clusterGraph {
	groups = slices.Clone(groups)
	g := clusterGraph{Job: j.Number, JobURL: at, Folded: len(groups) > maxBoxes}
	names := make([][]string, len(groups))
	if g.Folded {
		groups, names = foldStages(groups)
	} else {
		reduce(groups)
	}
	rows := map[int]int{} // boxes in a column so far
	for _, one := range groups {
		row := rows[one.stage]
		rows[one.stage]++
		b := graphBox{
			Name: one.name, Title: cutRunes(one.name, titleRunes), Stage: one.stage + 1, State: one.state(),
			Done: one.states[intent.TaskComplete], Total: one.total, Failed: one.states[intent.TaskFailed],
			X: marginX + one.stage*(boxWidth+gapX), Y: marginY + row*(boxHeight+gapY),
			URL: at + "?" + url.Values{"step": {one.name}}.Encode(),
		}
		if g.Folded {
			b.URL = at + "?stage=" + strconv.Itoa(one.stage+1)
		}
		for _, i := range one.before {
			b.After = append(b.After, groups[i].name)
		}
		g.Boxes = append(g.Boxes, b)
		g.Width = max(g.Width, b.X+boxWidth+marginX)
		g.Height = max(g.Height, b.Y+boxHeight+marginY)
	}
	for i, one := range groups {
		for _, j := range one.before {
			from, to := g.Boxes[j], g.Boxes[i]
			l := graphLine{X1: from.X + boxWidth, Y1: from.Y + boxHeight/2, X2: to.X, Y2: to.Y + boxHeight/2}
			l.XM = (l.X1 + l.X2) / 2
			g.Lines = append(g.Lines, l)
		}
	}
	if g.Folded {
		for i := range g.Boxes {
			g.Boxes[i].After = nil
			if i > 0 {
				g.Boxes[i].After = []string{g.Boxes[i-1].Name}
			}
			g.Boxes[i].Name += ": " + joinSome(names[i])
		}
	}
	slices.SortStableFunc(g.Boxes, func(a, b graphBox) int { return a.Stage - b.Stage })
	return g
}

// foldStages makes one group of the steps of each stage, and returns the names of the steps in each.
func foldStages(groups []stepGroup) (folded []stepGroup, names [][]string) {
	stages := 0
	for _, g := range groups {
		stages = max(stages, g.stage+1)
	}
	folded, names = make([]stepGroup, stages), make([][]string, stages)
	for i := range folded {
		folded[i] = stepGroup{name: "stage " + strconv.Itoa(i+1), stage: i, states: map[intent.ClusterTaskState]int{}}
		if i > 0 {
			folded[i].before = []int{i - 1}
		}
	}
	for _, g := range groups {
		f := &folded[g.stage]
		f.total += g.total
		f.retried = f.retried || g.retried
		for s, n := range g.states {
			f.states[s] += n
		}
		names[g.stage] = append(names[g.stage], g.name)
	}
	return folded, names
}

// reduce leaves out what follows from the rest: if c waits for b and b for a, that c waits for a is not drawn.
func reduce(groups []stepGroup) {
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return groups[a].stage - groups[b].stage })
	reach := make([][]bool, len(groups)) // what a group waits for in the end
	for _, i := range order {
		reach[i] = make([]bool, len(groups))
		far := make([]bool, len(groups)) // what is waited for through another one
		for _, j := range groups[i].before {
			for k, yes := range reach[j] {
				far[k] = far[k] || yes
			}
		}
		groups[i].before = slices.DeleteFunc(slices.Clone(groups[i].before), func(j int) bool { return far[j] })
		copy(reach[i], far)
		for _, j := range groups[i].before {
			reach[i][j] = true
		}
	}
}

// cutRunes shortens a text to so many characters.
func cutRunes(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// maxNamed is how many names a list in a sentence has.
const maxNamed = 12

// joinSome lists names, and not too many of them.
func joinSome(names []string) string {
	out := ""
	for i, name := range names {
		if i == maxNamed {
			return out + " and " + count(len(names)-i) + " more"
		}
		if i > 0 {
			out += ", "
		}
		out += name
	}
	return out
}
