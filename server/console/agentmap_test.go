package console

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// One target cannot be reached, one has a failure although it is paused, one is paused, one is at work, and one is
// well.
// The map shows each in the group of its worst state, the worst group first, and says how much is not as intended.
func TestTheMapShowsTheWorstOfEachAgentFirst(t *testing.T) {
	m := agentMapOf([]intent.AgentHealth{
		{Name: "well", Resources: map[intent.Status]int{intent.StatusDeployed: 7}},
		{Name: "works", Resources: map[intent.Status]int{intent.StatusDeploying: 1, intent.StatusAvailable: 2}},
		{Name: "paused", Paused: true, Resources: map[intent.Status]int{intent.StatusAvailable: 2}},
		{Name: "ill", Paused: true, Resources: map[intent.Status]int{
			intent.StatusFailed: 1, intent.StatusSkipped: 2, intent.StatusDeployed: 9,
		}},
		{Name: "lost", Unreachable: true, Resources: map[intent.Status]int{intent.StatusDeployed: 1}},
	})
	var seen []string
	for _, g := range m.Groups {
		for _, cell := range g.Cells {
			seen = append(seen, g.State.Word+" "+cell.Name+": "+cell.Text)
		}
	}
	want := `unreachable lost: 1 resource
failed ill: 3 of 12 resources not as intended, paused
paused paused: 2 of 2 resources not as intended, paused
to be deployed works: 3 of 3 resources not as intended
as intended well: 7 resources`
	if text := strings.Join(seen, "\n"); text != want {
		t.Errorf("the map is\n%s\nwant\n%s", text, want)
	}
	if m.Sentence != "4 of 5 agents need attention or are at work." {
		t.Error(m.Sentence)
	}
}

// An environment of 2,000 agents has a cell for each, and the page weighs less than 100 kB. A cell leads to the
// resources of its agent alone, not to those of agents whose names begin alike.
func TestTheMapOfManyAgentsIsLight(t *testing.T) {
	t.Parallel()
	const agents = 2000
	e := newEstate(t, agents, func(i int) intent.ResourceID {
		return intent.ResourceID{
			Type: "fs::File", Agent: fmt.Sprintf("host-%d.rack%02d.example.com", i, i%40), Attribute: "path",
			Value: "/etc/motd",
		}
	}, func(int) []int { return nil })
	e.ends(7, intent.StatusFailed, intent.NotBlocked)
	r := httptest.NewRequest(http.MethodGet, envURL(e.env)+"/agents", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	e.h.ServeHTTP(w, r)
	if size := w.Body.Len(); size > 100_000 {
		t.Errorf("the page has %d bytes on the wire", size)
	}
	unpacked, err := gzip.NewReader(w.Body)
	must(t, err)
	body, err := io.ReadAll(unpacked)
	must(t, err)
	page := string(body)
	if cells := strings.Count(page, "<li><a href=\"resources?"); cells != agents {
		t.Errorf("there are %d cells", cells)
	}
	contains(t, page, "2,000 of 2,000 agents", "1 of 1 resource not as intended", "1,999 agents",
		`href="resources?is-agent=host-7.rack07.example.com&amp;status=%21deployed"`)
	filtered := get(t, e.h, envURL(e.env)+"/resources?is-agent=host-7.rack07.example.com&status=%21deployed")
	contains(t, filtered.Body.String(), "1 in all")
	t.Logf("%d bytes, %d compressed", len(page), w.Result().ContentLength)
}
