package svgchart

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func draw(whole bool, series ...Series) Drawing {
	start := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	return Draw(Chart{
		Start: start, End: start.Add(time.Hour), Series: series, Whole: whole,
		Text:  func(v float64) string { return fmt.Sprint(v) },
		Tick:  func(t time.Time) string { return t.Format("15:04") },
		Label: func(t time.Time) string { return t.Format("15:04") },
	})
}

// Bars of two series lie one above the other; the interval of which nothing is known has no bar and no values.
func TestBarsAreStackedAndGapsStayEmpty(t *testing.T) {
	d := draw(true,
		Series{"good", "g", []float64{3, math.NaN(), 2}}, Series{"bad", "b", []float64{1, math.NaN(), 0}})
	if got := d.Paths[0].D; got != "M64 156V46.5h188.3V156zM442.7 156V83h188.3V156z" {
		t.Errorf("good: %s", got)
	}
	if got := d.Paths[1].D; got != "M64 46.5V10h188.3V46.5z" {
		t.Errorf("bad: %s", got)
	}
	gap, last := d.Intervals[1], d.Intervals[2]
	if gap.Known || gap.Values[0] != "" || !last.Known || last.Values[1] != "0" {
		t.Errorf("%+v", d.Intervals)
	}
	if len(d.Y) != 5 || d.Y[0].Text != "0" || d.Y[4].Text != "4" || d.X[1].Text != "10:20" {
		t.Errorf("axes %v, %v", d.Y, d.X)
	}
}

// The axis ends at or above the highest bar, with few ticks at round numbers, whatever the values.
func TestAxesAreRound(t *testing.T) {
	for _, highest := range []float64{0, 1e-9, 0.3, 1, 4, 7, 99, 100, 101, 48_211, 3e12} {
		for _, whole := range []bool{false, true} {
			d := draw(whole, Series{"x", "x", []float64{highest}})
			if len(d.Y) < 2 || len(d.Y) > 7 {
				t.Errorf("%v: %d ticks: %v", highest, len(d.Y), d.Y)
			}
			var end float64
			_, err := fmt.Sscan(d.Y[len(d.Y)-1].Text, &end)
			if err != nil || end < highest*(1-1e-9) || highest > 0 && !whole && end > 3*highest {
				t.Errorf("%v: the axis ends at %v", highest, end)
			}
		}
	}
}

// What cannot be drawn is unknown, and nothing at all draws nothing.
func TestNonsenseIsUnknown(t *testing.T) {
	d := draw(false, Series{"x", "x", []float64{-1, math.Inf(1), math.NaN()}})
	if d.Known || d.Paths[0].D != "" {
		t.Errorf("%+v", d)
	}
	if d := draw(false); d.Known || len(d.Intervals) != 0 {
		t.Errorf("%+v", d)
	}
}
