package console

import (
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// A minute ago, a sample was taken. The page shows it as a bar in a chart and as a row in a table, for the hour and the
// month; the chart of what has not happened says so.
func TestMetricsAreDrawnAndTabled(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	_, err := r.Store.RecordMetrics(t.Context(), r.Now().Add(-time.Minute), -100*365*24*time.Hour)
	must(t, err)
	counts, err := r.Store.ResourceCounts(t.Context(), r.Production.ID)
	must(t, err)
	for _, length := range []string{"", "hour", "month"} {
		body := get(t, h, envURL(r.Production.ID)+"/metrics?range="+length).Body.String()
		_, states, _ := strings.Cut(body, `id="states-title"`)
		states, _, _ = strings.Cut(states, "</section>")
		for _, want := range []string{
			`<path class="b-intended" d="M`, count(counts[intent.StatusDeployed]) + " as intended, ",
			`<td class="num">` + count(counts[intent.StatusFailed]) + "</td>",
			`<th scope="col" class="num">failed</th>`,
		} {
			if !strings.Contains(states, want) {
				t.Errorf("%s: no %q in %s", length, want, states)
			}
		}
		_, times, _ := strings.Cut(body, `id="deploy-time-title"`)
		if !strings.Contains(times, "Nothing was recorded") {
			t.Errorf("%s: nothing was deployed, but the chart does not say so", length)
		}
	}
	body := get(t, h, envURL(r.Sandbox.ID)+"/metrics").Body.String()
	if !strings.Contains(body, `aria-current="page">Day</a>`) {
		t.Error("the day is not chosen")
	}
}
