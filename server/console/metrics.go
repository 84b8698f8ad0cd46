package console

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/console/svgchart"
)

// metricsPage shows what an environment was like over time.
type metricsPage struct {
	frame
	Ranges []metricRange
	Text   string // what the page is about, in one sentence
	Charts []metricChart
}

// metricRange is a length of time to choose.
type metricRange struct {
	Name    string // in the address
	Text    string
	URL     string
	Current bool

	length, interval time.Duration
	tick, label      string // layouts of times at the axis and in the table
}

var metricRanges = []metricRange{
	{Name: "hour", Text: "Hour", length: time.Hour, interval: time.Minute, tick: "15:04", label: "15:04"},
	{Name: "day", Text: "Day", length: 24 * time.Hour, interval: 15 * time.Minute, tick: "15:04", label: "2 Jan 15:04"},
	{
		Name: "week", Text: "Week", length: 7 * 24 * time.Hour, interval: 2 * time.Hour, tick: "Mon 2 Jan",
		label: "2 Jan 15:04",
	},
	{
		Name: "month", Text: "Month", length: 30 * 24 * time.Hour, interval: 8 * time.Hour, tick: "2 Jan",
		label: "2 Jan 15:04",
	},
}

// metricChart is a chart with its text.
type metricChart struct {
	ID, Title, Note string
	Drawing         svgchart.Drawing
	Last            string // the last values, for people who do not look at the picture
	Legend          []svgchart.Path
}

// metricPlot says what a chart shows of an interval.
type metricPlot struct {
	id, title, note string
	whole           bool
	text            func(float64) string
	series          []metricSeries
}

type metricSeries struct {
	name, class string
	of          func(intent.MetricInterval) float64 // NaN: nothing is known
}

func amount(v float64) string {
	if v == math.Trunc(v) || v >= 100 {
		return count(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func seconds(v float64) string {
	if v == 0 {
		return "0 s"
	}
	return duration(time.Duration(v * float64(time.Second)))
}

func statesOf(which ...intent.Status) func(intent.MetricInterval) float64 {
	return func(m intent.MetricInterval) (n float64) {
		for _, status := range which {
			n += m.Resources[status]
		}
		return n
	}
}

func mean(of func(intent.MetricInterval) intent.MetricTimes) func(intent.MetricInterval) float64 {
	return func(m intent.MetricInterval) float64 {
		if v, any := of(m).Mean(); any {
			return v
		}
		return math.NaN()
	}
}

var metricPlots = []metricPlot{
	{"states", "Resources by state", "How many there were, on average.", true, amount, []metricSeries{
		{"as intended", "b-intended", statesOf(intent.StatusDeployed)},
		{"deploying", "b-deploying", statesOf(intent.StatusDeploying)},
		{"to be deployed, or differs", "b-differs", statesOf(intent.StatusAvailable, intent.StatusNonCompliant)},
		{"failed", "b-failed", statesOf(intent.StatusFailed)},
		{"waiting for another resource", "b-waiting", statesOf(intent.StatusSkipped)},
		{"undefined or blocked", "b-undefined", statesOf(intent.StatusUndefined, intent.StatusSkippedForUndefined)},
	}},
	{"deployments", "Deployments", "How many deployments of a resource ended.", true, amount, []metricSeries{
		{"went well", "b-intended", func(m intent.MetricInterval) float64 {
			return float64(m.Deploys.Count - m.DeploysFailed)
		}},
		{"failed", "b-failed", func(m intent.MetricInterval) float64 { return float64(m.DeploysFailed) }},
	}},
	{"deploy-time", "Time of a deployment", "How long the deployment of one resource took, on average.", false, seconds,
		[]metricSeries{
			{"deployment", "b-deploying", mean(func(m intent.MetricInterval) intent.MetricTimes { return m.Deploys })},
		}},
	{"queue", "Waiting for their turn", "How many there were, on average.", true, amount, []metricSeries{
		{"resources", "b-differs", statesOf(intent.StatusAvailable)},
		{"compiles", "b-waiting", func(m intent.MetricInterval) float64 { return m.CompilesWaiting }},
	}},
	{"compile-time", "Time of a compile", "How long one waited for its turn and how long it ran, on average.", false,
		seconds, []metricSeries{
			{"waited", "b-waiting", mean(func(m intent.MetricInterval) intent.MetricTimes { return m.Waits })},
			{"ran", "b-deploying", mean(func(m intent.MetricInterval) intent.MetricTimes { return m.Compiles })},
		}},
	{"compiles", "Compiles", "How many ended.", true, amount, []metricSeries{
		{"compiles", "b-deploying", func(m intent.MetricInterval) float64 { return float64(m.Compiles.Count) }},
	}},
	{"agents", "Agents by state", "How many there were, on average.", true, amount, []metricSeries{
		{"up", "b-intended", func(m intent.MetricInterval) float64 { return m.Agents.Up }},
		{"cannot be reached, or halted", "b-failed", func(m intent.MetricInterval) float64 { return m.Agents.Down }},
		{"paused", "b-paused", func(m intent.MetricInterval) float64 { return m.Agents.Paused }},
	}},
}

func (c *console) metrics(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Metrics", "metrics", crumb{Text: "Metrics"})
	if err != nil {
		return view{}, err
	}
	p := metricsPage{frame: f}
	chosen := metricRanges[1]
	for _, one := range metricRanges {
		if one.Name == r.URL.Query().Get("range") {
			chosen = one
		}
	}
	for _, one := range metricRanges {
		one.URL, one.Current = envURL(e.ID)+"/metrics?range="+one.Name, one.Name == chosen.Name
		p.Ranges = append(p.Ranges, one)
	}
	// The end is that of an interval, so that the bars stay the same from one minute to the next but for the last one.
	end := c.now().UTC().Truncate(chosen.interval).Add(chosen.interval)
	start := end.Add(-chosen.length)
	n := int(chosen.length / chosen.interval)
	found, err := c.store.Metrics(r.Context(), e.ID, start, end, n)
	if err != nil {
		return view{}, err
	}
	p.Text = "From " + minute(start, "UTC") + " to " + minute(end, "UTC") + ", in intervals of " +
		intervalText(chosen.interval) + "."
	if hours := e.Int("environment_metrics_retention"); hours > 0 && time.Duration(hours)*time.Hour < chosen.length {
		p.Text += " Metrics are kept for " + plural(hours, "hour") +
			": see environment_metrics_retention in the settings."
	}
	for _, plot := range metricPlots {
		p.Charts = append(p.Charts, plot.draw(chosen, start, end, n, found))
	}
	return view{template: "metrics", data: p}, nil
}

func intervalText(d time.Duration) string {
	if d < time.Hour {
		return plural(int(d/time.Minute), "minute")
	}
	return plural(int(d/time.Hour), "hour")
}

func (p metricPlot) draw(
	over metricRange, start, end time.Time, n int, found []intent.MetricInterval,
) metricChart {
	c := svgchart.Chart{
		Start: start, End: end, Whole: p.whole, Text: p.text,
		Tick:  func(t time.Time) string { return t.Format(over.tick) },
		Label: func(t time.Time) string { return t.Format(over.label) },
	}
	for _, s := range p.series {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.NaN()
		}
		for _, one := range found {
			values[one.Place] = s.of(one)
		}
		c.Series = append(c.Series, svgchart.Series{Name: s.name, Class: s.class, Values: values})
	}
	out := metricChart{ID: p.id, Title: p.title, Note: p.note, Drawing: svgchart.Draw(c)}
	out.Legend = out.Drawing.Paths
	for i := len(out.Drawing.Intervals) - 1; i >= 0 && out.Last == ""; i-- {
		if one := out.Drawing.Intervals[i]; one.Known {
			out.Last = "Last known, " + one.Label + ": " + valuesText(out.Legend, one.Values) + "."
		}
	}
	return out
}

func valuesText(of []svgchart.Path, values []string) (text string) {
	for i, v := range values {
		if v == "" {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += v + " " + of[i].Name
	}
	return text
}
