package intent

import "time"

// MetricInterval is what was recorded of an environment in an interval of time. Counts are averages over the interval.
type MetricInterval struct {
	// Place is the place of the interval among those asked for, from 0.
	Place     int
	Resources map[Status]float64
	// Agents counts those that are up, paused, and down: their target cannot be reached, or the environment is halted.
	Agents          MetricAgents
	CompilesWaiting float64
	// Compiles are the compiles that ended, Waits those that began after they had waited, and Deploys the deployments
	// of resources that ended, the failed ones among them.
	Compiles, Waits, Deploys MetricTimes
	DeploysFailed            int
}

// MetricAgents counts agents by state.
type MetricAgents struct{ Up, Down, Paused float64 }

// MetricTimes says how often something happened, and how long it took altogether.
type MetricTimes struct {
	Count   int
	Seconds float64
}

// Mean returns how long it took on average in seconds; false when it did not happen.
func (t MetricTimes) Mean() (float64, bool) {
	if t.Count == 0 {
		return 0, false
	}
	return t.Seconds / float64(t.Count), true
}

// MetricMinutes is for how long the sample of each minute is kept. Older ones are put together to one for each hour.
const MetricMinutes = 25 * time.Hour
