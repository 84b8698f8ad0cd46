package view_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/view"
)

// TestAViewHasNoSecretsAndOneForm makes the view of one record in several orders. Nothing that is sealed is in it, nor
// a machine that is gone, and it is the same for the same record only.
func TestAViewHasNoSecretsAndOneForm(t *testing.T) {
	id, other := uuid.New(), uuid.New()
	clusters := []intent.Cluster{
		{
			ID: id, Name: "web", State: intent.ClusterActive, Applied: json.RawMessage(
				`{"name":"web","owner":"anna","template":"lamp","size":2,"services":["db","web"],` +
					`"config":{"b":1,"a":{"x":2}}}`),
		},
		{ID: other, Name: "next", State: intent.ClusterPending, Owner: "eve"},
		{ID: uuid.New(), Name: "old", State: intent.ClusterTerminated},
	}
	nodes := []intent.ClusterNode{
		{
			Cluster: id, Number: 1001, Hostname: "web-1001", State: intent.NodeMade, Ready: true,
			Services: json.RawMessage(`{"web":{"phase":"started","config":"c"},"db":{"phase":"initialized"},
				"gone":{"phase":""}}`),
			Facts:  json.RawMessage(`{"addresses":{"bind_v4":"10.0.0.2"},"flavor":"s"}`),
			Sealed: []byte("sealed-secret"),
		},
		{Cluster: id, Number: 1000, Hostname: "web-1000", State: intent.NodeMade},
		{Cluster: id, Number: 999, Hostname: "web-999", State: intent.NodeGone, Ready: true},
		{Cluster: other, Number: 1000, Hostname: "next-1000", State: intent.NodeMade, Ready: true},
	}
	first, err := view.Of(clusters, nodes)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"in_place":true,"name":"web","template":"lamp","size":2,"owner":"anna","provider":"",` +
		`"services":["db","web"],"config":{"a":{"x":2},"b":1},"nodes":[` +
		`{"number":1000,"hostname":"web-1000","addresses":{},"services":[],"hardwaretype":"","imagetype":"",` +
		`"provider":"","state":"making","facts":{}},` +
		`{"number":1001,"hostname":"web-1001","addresses":{"bind_v4":"10.0.0.2"},"services":["db","web"],` +
		`"hardwaretype":"","imagetype":"","provider":"","state":"ready","facts":{"flavor":"s"}}]}`
	if got := string(first["web"]); got != want {
		t.Errorf("web is\n%s, want\n%s", got, want)
	}
	if got := string(first["next"]); !strings.Contains(got, `"in_place":false`) || strings.Contains(got, "next-1000") {
		t.Errorf("next is %s", got)
	}
	if len(first) != 2 {
		t.Errorf("there are %d clusters", len(first))
	}
	slices.Reverse(clusters)
	slices.Reverse(nodes)
	again, err := view.Of(clusters, nodes)
	if err != nil || again.Digest() != first.Digest() {
		t.Errorf("another order is another view: %v", err)
	}
	nodes[len(nodes)-1].Facts = json.RawMessage(`{"addresses":{"bind_v4":"10.0.0.3"},"flavor":"s"}`)
	moved, err := view.Of(clusters, nodes)
	if err != nil || moved.Digest() == first.Digest() {
		t.Errorf("another address is the same view: %v", err)
	}
	if (view.View{}).Digest() == "" {
		t.Error("a view without clusters has no digest: that would mean that no model looked")
	}
}
