package api

import (
	"net/url"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// A dashboard asks for the last hour in windows of ten minutes. Two samples were taken; where none was, the answer is
// null, but nothing was compiled: that is the number 0.
func TestMetricsAreInWindows(t *testing.T) {
	c, r := rich(t)
	base := time.Now().UTC().Add(24 * time.Hour).Truncate(time.Hour)
	for _, at := range []time.Duration{12 * time.Minute, 14 * time.Minute} {
		if taken, err := r.Store.RecordMetrics(t.Context(), base.Add(at), 0); err != nil || !taken {
			t.Fatal(taken, err)
		}
	}
	counts, err := r.Store.ResourceCounts(t.Context(), r.Production.ID)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(names []string, from, to time.Time, n, round string) string {
		return "/api/v2/metrics?" + url.Values{
			"metrics": names, "start_interval": {from.Format(time.RFC3339)}, "end_interval": {to.Format(time.RFC3339)},
			"nb_datapoints": {n}, "round_timestamps": {round},
		}.Encode()
	}
	all := []string{
		"resource.resource_count", "resource.agent_count", "orchestrator.compile_time",
		"orchestrator.compile_waiting_time", "orchestrator.compile_rate", "orchestrator.deploy_time",
		"orchestrator.deploy_queue_length",
	}
	got := c.get(ask(all, base, base.Add(time.Hour), "6", "false"))
	if n := len(got.list("data", "timestamps")); n != 6 {
		t.Errorf("%d windows", n)
	}
	if first := got.at("data", "timestamps", 0); first != formatTime(base.Add(10*time.Minute)) {
		t.Errorf("the first window ends at %v", first)
	}
	for _, name := range all {
		if n := len(got.list("data", "metrics", name)); n != 6 {
			t.Errorf("%s has %d values", name, n)
		}
	}
	if v := got.at("data", "metrics", "resource.resource_count", 0); v != nil {
		t.Errorf("a window without samples has %v", v)
	}
	got.is(counts[intent.StatusDeployed], "data", "metrics", "resource.resource_count", 1, "deployed")
	got.is(0, "data", "metrics", "resource.resource_count", 1, "dry")
	got.is(0, "data", "metrics", "orchestrator.compile_rate", 5)
	if v := got.at("data", "metrics", "orchestrator.deploy_time", 1); v != nil {
		t.Errorf("nothing was deployed, and it took %v", v)
	}
	if v := got.at("data", "metrics", "resource.agent_count", 1).(map[string]any); len(v) != 3 {
		t.Errorf("agents: %v", v)
	}

	// Rounded to hours, the windows contain what was asked for.
	from := base.Add(-3 * time.Hour).Add(20 * time.Minute)
	got = c.get(ask(all[:1], from, base.Add(50*time.Minute), "3", "true"))
	got.is(formatTime(base.Add(-3*time.Hour)), "data", "start")
	got.is(formatTime(base.Add(time.Hour)), "data", "end")
	if n := len(got.list("data", "timestamps")); n != 4 {
		t.Errorf("%d windows", n)
	}
	got.is(counts[intent.StatusDeployed], "data", "metrics", all[0], 3, "deployed")

	for _, bad := range []string{
		ask(all, base, base, "6", "false"), ask(all, base, base.Add(time.Hour), "0", "false"),
		ask(all, base, base.Add(time.Hour), "60", "false"), ask(nil, base, base.Add(time.Hour), "6", "false"),
		ask([]string{"resource.unknown"}, base, base.Add(time.Hour), "6", "false"),
		ask(all, base, base.Add(time.Hour), "6", "true"), ask(all, base, base.Add(time.Hour), "99999999", "false"),
	} {
		c.call("GET", bad, "", 400)
	}
}
