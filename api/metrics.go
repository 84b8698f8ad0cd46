package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) metricCalls(c *calls) {
	v2(c, http.MethodGet, "/api/v2/metrics",
		"Show what an environment was like over time: the metrics that are named, in as many intervals as asked for.",
		access.SeeEnvironment, s.getMetrics)
}

// mostIntervals is how many intervals a client may ask for at once.
const mostIntervals = 10_000

type metricsIn struct {
	inEnvironment
	Metrics []string `arg:"metrics,required"`
	Start   string   `arg:"start_interval,required"`
	End     string   `arg:"end_interval,required"`
	// Intervals is how many there are to be; with round_timestamps there may be more.
	Intervals int  `arg:"nb_datapoints,required"`
	Round     bool `arg:"round_timestamps"`
}

// metrics are values in intervals of the same length. Timestamps are the ends of the intervals. A value is a number, or
// numbers by group, or null where nothing was recorded.
type metrics struct {
	Start      timestamp        `json:"start"`
	End        timestamp        `json:"end"`
	Timestamps []timestamp      `json:"timestamps"`
	Metrics    map[string][]any `json:"metrics"`
}

// metric is a metric that the API has.
type metric struct {
	name string
	// of returns the value of an interval that has samples and lasts so long; nil when there is none.
	of func(m intent.MetricInterval, length time.Duration) any
	// empty is the value of an interval without samples.
	empty any
}

// metricList are the metrics. Those with a remark are ours; the others are as in Inmanta.
var metricList = []metric{
	{"resource.resource_count", resourceMetric, nil},
	{"resource.agent_count", func(m intent.MetricInterval, _ time.Duration) any {
		return map[string]float64{"up": m.Agents.Up, "down": m.Agents.Down, "paused": m.Agents.Paused}
	}, nil},
	{"orchestrator.compile_time", meanOf(func(m intent.MetricInterval) intent.MetricTimes { return m.Compiles }), nil},
	{
		"orchestrator.compile_waiting_time",
		meanOf(func(m intent.MetricInterval) intent.MetricTimes { return m.Waits }), nil,
	},
	{"orchestrator.compile_rate", rateOf(func(m intent.MetricInterval) int { return m.Compiles.Count }), 0.0},
	// Ours: how many compiles waited, and how many resources.
	{"orchestrator.compile_queue_length", func(m intent.MetricInterval, _ time.Duration) any {
		return m.CompilesWaiting
	}, nil},
	{"orchestrator.deploy_queue_length", func(m intent.MetricInterval, _ time.Duration) any {
		return m.Resources[intent.StatusAvailable] + m.Resources[intent.StatusDeploying]
	}, nil},
	// Ours: how long the deployment of a resource took, in seconds, and how many ended and failed in an hour.
	{"orchestrator.deploy_time", meanOf(func(m intent.MetricInterval) intent.MetricTimes { return m.Deploys }), nil},
	{"orchestrator.deploy_rate", rateOf(func(m intent.MetricInterval) int { return m.Deploys.Count }), 0.0},
	{"orchestrator.deploy_failure_rate", rateOf(func(m intent.MetricInterval) int { return m.DeploysFailed }), 0.0},
}

// countedStatuses are the states that Inmanta counts resources by. Some cannot occur here, and are always 0.
var countedStatuses = []intent.Status{
	intent.StatusUnavailable, intent.StatusSkipped, intent.StatusDry, intent.StatusDeployed, intent.StatusFailed,
	intent.StatusDeploying, intent.StatusAvailable, intent.StatusCancelled, intent.StatusUndefined,
	intent.StatusSkippedForUndefined, intent.StatusNonCompliant,
}

func resourceMetric(m intent.MetricInterval, _ time.Duration) any {
	out := make(map[string]float64, len(countedStatuses))
	for _, status := range countedStatuses {
		out[string(status)] = m.Resources[status]
	}
	return out
}

func meanOf(of func(intent.MetricInterval) intent.MetricTimes) func(intent.MetricInterval, time.Duration) any {
	return func(m intent.MetricInterval, _ time.Duration) any {
		if mean, any := of(m).Mean(); any {
			return mean
		}
		return nil
	}
}

func rateOf(of func(intent.MetricInterval) int) func(intent.MetricInterval, time.Duration) any {
	return func(m intent.MetricInterval, length time.Duration) any { return float64(of(m)) / length.Hours() }
}

// period is a time that is divided into intervals of the same length.
type period struct {
	start, end time.Time
	n          int
}

func (p period) interval() time.Duration { return p.end.Sub(p.start) / time.Duration(p.n) }

// rounded returns a period that contains p and whose intervals are a number of whole hours, and begin where that number
// divides the hours since 1970.
func (p period) rounded() period {
	length := p.interval().Truncate(time.Hour)
	begin := func(t time.Time) time.Time {
		unit := int64(length.Seconds())
		return time.Unix(t.Unix()-(t.Unix()%unit+unit)%unit, 0).UTC()
	}
	out := period{start: begin(p.start), end: begin(p.end)}
	if out.end.Before(p.end) {
		out.end = out.end.Add(length)
	}
	out.n = int(out.end.Sub(out.start) / length)
	return out
}

// ends returns the ends of the intervals, as far as seconds show them.
func (p period) ends() []timestamp {
	out := make([]timestamp, p.n)
	length := p.interval().Truncate(time.Second)
	for i := range out {
		out[i] = stamp(p.end.Add(-time.Duration(p.n-1-i) * length))
	}
	return out
}

func (a metricsIn) period() (p period, err error) {
	if p.start, err = store.ParseTime(a.Start); err != nil {
		return p, invalid("start_interval is no time: %v", err)
	}
	if p.end, err = store.ParseTime(a.End); err != nil {
		return p, invalid("end_interval is no time: %v", err)
	}
	p.n = a.Intervals
	switch {
	case !p.start.Before(p.end):
		return p, invalid("start_interval has to be before end_interval")
	case p.n <= 0 || p.n > mostIntervals:
		return p, invalid("nb_datapoints has to be a number from 1 to %d", mostIntervals)
	case p.end.Sub(p.start) > 100*365*24*time.Hour:
		return p, invalid("start_interval and end_interval are more than a hundred years apart")
	case p.end.Sub(p.start) <= time.Duration(p.n)*time.Minute:
		return p, invalid("between start_interval and end_interval there have to be more than nb_datapoints minutes")
	case len(a.Metrics) == 0:
		return p, invalid("metrics has to name at least one metric")
	case a.Round && p.end.Sub(p.start) < time.Duration(p.n)*time.Hour:
		return p, invalid("with round_timestamps, between start_interval and end_interval there have to be at least " +
			"nb_datapoints hours")
	case a.Round:
		p = p.rounded()
	}
	return p, nil
}

func (s *server) getMetrics(ctx context.Context, a metricsIn) (metrics, error) {
	over, err := a.period()
	if err != nil {
		return metrics{}, err
	}
	var unknown []string
	for _, name := range a.Metrics {
		if !slices.ContainsFunc(metricList, func(m metric) bool { return m.name == name }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return metrics{}, invalid("there are no such metrics: %s", strings.Join(unknown, ", "))
	}
	found, err := s.store.Metrics(ctx, a.Env, over.start, over.end, over.n)
	out := metrics{
		Start: stamp(over.start), End: stamp(over.end), Timestamps: over.ends(), Metrics: map[string][]any{},
	}
	for _, m := range metricList {
		if !slices.Contains(a.Metrics, m.name) {
			continue
		}
		values := make([]any, over.n)
		for i := range values {
			values[i] = m.empty
		}
		for _, one := range found {
			values[one.Place] = m.of(one, over.interval())
		}
		out.Metrics[m.name] = values
	}
	return out, err
}
