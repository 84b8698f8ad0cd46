package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// A record that is discovered again is replaced, unless it is newer; a list is deleted entirely or not at all.
func TestDiscoveredRecords(t *testing.T) {
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	thing := func(name, record string, at time.Time) intent.Discovered {
		return intent.Discovered{
			ID: intent.ResourceID{Type: "net::Port", Agent: "switch", Attribute: "name", Value: name},
			Discovery: intent.ResourceID{
				Type:      "net::Scan",
				Agent:     "switch",
				Attribute: "name",
				Value:     "all",
			}, Record: json.RawMessage(record), Found: at,
		}
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	for _, list := range [][]intent.Discovered{
		{thing("a", `{"up": true}`, at), thing("b", `{}`, at),
			thing("a", `{"up": false}`, at)}, // the last of two counts
		{thing("b", `{"new": 1}`, at.Add(time.Second))},
		{thing("b", `{"old": 1}`, at.Add(-time.Second))},
		nil,
	} {
		if err := s.SetDiscovered(t.Context(), env, list); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.DiscoveredList(t.Context(), env,
		intent.ListQuery{Filters: map[string][]string{"managed": {"false"}, "agent": {"swi"}}})
	if err != nil || len(page.Items) != 2 || string(page.Items[0].Record) != `{"up": false}` ||
		string(page.Items[1].Record) != `{"new": 1}` ||
		page.Items[0].Managed {
		t.Fatalf("%+v %v", page.Items, err)
	}
	a, b, c := thing("a", "", at).ID, thing("b", "", at).ID, thing("c", "", at).ID
	if err := s.DeleteDiscovered(t.Context(), env, []intent.ResourceID{a, c}); !fault.Is(err, fault.NotFound) {
		t.Errorf("forgetting what was not discovered: %v", err)
	}
	if _, err := s.Discovered(t.Context(), env, a); err != nil {
		t.Errorf("a list was forgotten in part: %v", err)
	}
	if err := s.DeleteDiscovered(t.Context(), env, []intent.ResourceID{a, b, a}); err != nil {
		t.Error(err)
	}
	if _, err := s.Discovered(t.Context(), env, a); !fault.Is(err, fault.NotFound) {
		t.Errorf("after it was forgotten: %v", err)
	}
}
