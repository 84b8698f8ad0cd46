// Package svgchart computes charts of values over time, for a template that draws them as inline SVG: bars, one above
// the other, with axes. It needs no script and no style of its own: every series names a class of the style sheet.
//
//	Chart: values by series and interval ─▶ Draw ─▶ Drawing: one path for each series, ticks, and rows for a table
//
// A picture is not enough for people who cannot see it, so a drawing has the same values as the rows of a table.
package svgchart

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Chart is what is to be drawn: the values of some series in intervals of the same length.
type Chart struct {
	// Start and End are those of the whole chart; there are as many intervals between them as the series have values.
	Start, End time.Time
	Series     []Series
	// Text shows a value to people, such as "3" or "1.2 s".
	Text func(float64) string
	// Tick shows a time at the axis, and Label the time of an interval in the table.
	Tick, Label func(time.Time) string
	// Whole: the values are counts, so that the axis has no fractions.
	Whole bool
}

// Series is a row of values. NaN stands for an interval of which nothing is known.
type Series struct {
	Name   string
	Class  string
	Values []float64
}

// Drawing is what a template draws, in a box of Width by Height in which the bars lie right of Left and above Bottom.
type Drawing struct {
	Width, Height, Left, Bottom int
	Paths                       []Path
	Y, X                        []Tick
	Intervals                   []Interval
	// Known is whether anything is known at all.
	Known bool
}

// Path is all bars of a series, as the d attribute of a path.
type Path struct {
	Name, Class, D string
}

// Tick is a place at an axis with its text.
type Tick struct {
	At   string
	Text string
}

// Interval is what is known of an interval: its place in the picture, and its row in the table.
type Interval struct {
	X, W   string
	Label  string
	Values []string // of each series
	Known  bool
}

const (
	width, height = 640, 180
	left, right   = 64, 8
	top, bottom   = 10, 24
	lines         = 4 // about as many ticks are at the vertical axis
	times         = 6 // and at the horizontal one
)

// Draw draws a chart. Negative and infinite values count as unknown.
func Draw(c Chart) Drawing {
	d := Drawing{Width: width, Height: height, Left: left, Bottom: height - bottom}
	n := 0
	for _, s := range c.Series {
		n = max(n, len(s.Values))
	}
	if n == 0 || !c.Start.Before(c.End) {
		return d
	}
	value := func(s Series, i int) (float64, bool) {
		if i >= len(s.Values) || math.IsNaN(s.Values[i]) || math.IsInf(s.Values[i], 0) || s.Values[i] < 0 {
			return 0, false
		}
		return s.Values[i], true
	}
	highest := 0.0
	for i := range n {
		sum := 0.0
		for _, s := range c.Series {
			v, _ := value(s, i)
			sum += v
		}
		highest = max(highest, sum)
	}
	step := niceStep(highest/lines, c.Whole)
	limit := math.Max(math.Ceil(highest/step-1e-9), 1) * step
	y := func(v float64) float64 { return float64(d.Bottom) - v/limit*float64(d.Bottom-top) }
	for v := 0.0; v <= limit+step/2; v += step {
		d.Y = append(d.Y, Tick{At: number(y(v)), Text: c.Text(v)})
	}
	length := c.End.Sub(c.Start) / time.Duration(n)
	w := float64(width-left-right) / float64(n)
	gap := min(1, w/5)
	base := make([]float64, n)
	for _, s := range c.Series {
		var path strings.Builder
		for i := range n {
			v, _ := value(s, i)
			if v == 0 {
				continue
			}
			from, to := y(base[i]), y(base[i]+v)
			base[i] += v
			path.WriteString("M" + number(left+float64(i)*w) + " " + number(from) + "V" + number(to) +
				"h" + number(w-gap) + "V" + number(from) + "z")
		}
		d.Paths = append(d.Paths, Path{Name: s.Name, Class: s.Class, D: path.String()})
	}
	every := max(1, n/times)
	for i := range n {
		at := c.Start.Add(time.Duration(i) * length)
		x := left + float64(i)*w
		if i%every == 0 {
			d.X = append(d.X, Tick{At: number(x), Text: c.Tick(at)})
		}
		one := Interval{X: number(x), W: number(w), Label: c.Label(at)}
		for _, s := range c.Series {
			text := ""
			if v, ok := value(s, i); ok {
				one.Known = true
				text = c.Text(v)
			}
			one.Values = append(one.Values, text)
		}
		d.Known = d.Known || one.Known
		d.Intervals = append(d.Intervals, one)
	}
	return d
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is at least x.
func niceStep(x float64, whole bool) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	step := 10 * power
	for _, nice := range []float64{1, 2, 5} {
		if nice*power >= x*(1-1e-9) {
			step = nice * power
			break
		}
	}
	if whole {
		step = max(step, 1)
	}
	return step
}

func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
