// Package view makes what the model of an environment can see of its clusters:
//
//	record: clusters, nodes ── Of ──▶ JSON by name ──▶ compile job ──▶ the module ordain (internal/python/runtime)
//	                                       └── Digest ──▶ provenance of the version
//
// The JSON is the same for the same record, so that the same inputs lead to the same export. The digest says whether
// a version was compiled from what is in the record now. Secrets of nodes are sealed in the record, and are never part
// of a view.
package view

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/cluster/plan"
)

// View has clusters by name.
type View map[string]json.RawMessage

// cluster is one cluster as the module ordain reads it.
type cluster struct {
	// InPlace reports whether all of the cluster was there at some time. Until then its nodes are unknown.
	InPlace  bool           `json:"in_place"`
	Name     string         `json:"name"`
	Template string         `json:"template"`
	Size     int            `json:"size"`
	Owner    string         `json:"owner"`
	Provider string         `json:"provider"`
	Services []string       `json:"services"`
	Config   map[string]any `json:"config"`
	Nodes    []node         `json:"nodes"`
}

// node is a machine of a cluster.
type node struct {
	Number       int                        `json:"number"`
	Hostname     string                     `json:"hostname"`
	Addresses    map[string]string          `json:"addresses"`
	Services     []string                   `json:"services"`
	HardwareType string                     `json:"hardwaretype"`
	ImageType    string                     `json:"imagetype"`
	Provider     string                     `json:"provider"`
	State        string                     `json:"state"`
	Facts        map[string]json.RawMessage `json:"facts"`
}

// The states of nodes. A node that is not ready has no address that the model may use.
const (
	planned = "planned"
	making  = "making"
	ready   = "ready"
)

// Of makes the view of clusters, with the nodes of all of them that are not gone. Clusters that are terminated are left
// out.
func Of(clusters []intent.Cluster, nodes []intent.ClusterNode) (View, error) {
	out := View{}
	for _, c := range clusters {
		if c.State == intent.ClusterTerminated {
			continue
		}
		seen, err := clusterOf(c)
		if err != nil {
			return nil, fmt.Errorf("the manifest of the cluster %s cannot be read: %w", c.Name, err)
		}
		for _, n := range nodes {
			if n.Cluster != c.ID || n.State == intent.NodeGone || !seen.InPlace {
				continue
			}
			one, err := nodeOf(n)
			if err != nil {
				return nil, fmt.Errorf("what is known of the node %d of the cluster %s cannot be read: %w",
					n.Number, c.Name, err)
			}
			seen.Nodes = append(seen.Nodes, one)
		}
		slices.SortFunc(seen.Nodes, func(a, b node) int { return a.Number - b.Number })
		if out[c.Name], err = json.Marshal(seen); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// clusterOf describes a cluster by the manifest that was reached last.
func clusterOf(c intent.Cluster) (cluster, error) {
	out := cluster{Name: c.Name, Owner: c.Owner, Services: []string{}, Config: map[string]any{}, Nodes: []node{}}
	if c.Applied == nil {
		return out, nil
	}
	m := manifest.Manifest{}
	if err := json.Unmarshal(c.Applied, &m); err != nil {
		return out, err
	}
	out.InPlace = true
	out.Template, out.Size, out.Owner, out.Provider = m.Template, m.Size, m.Owner, m.Provider
	out.Services = append(out.Services, m.Services...)
	maps.Copy(out.Config, m.Config)
	return out, nil
}

func nodeOf(n intent.ClusterNode) (node, error) {
	out := node{
		Number: n.Number, Hostname: n.Hostname, HardwareType: n.Hardware, ImageType: n.Image, Provider: n.Provider,
		State: planned, Addresses: map[string]string{}, Services: []string{}, Facts: map[string]json.RawMessage{},
	}
	switch {
	case n.State == intent.NodeMade && n.Ready:
		out.State = ready
	case n.State == intent.NodeMade:
		out.State = making
	}
	if len(n.Facts) > 0 {
		if err := json.Unmarshal(n.Facts, &out.Facts); err != nil {
			return out, err
		}
	}
	if raw := out.Facts["addresses"]; raw != nil {
		if err := json.Unmarshal(raw, &out.Addresses); err != nil {
			return out, err
		}
	}
	delete(out.Facts, "addresses")
	services := map[string]plan.Service{}
	if len(n.Services) > 0 {
		if err := json.Unmarshal(n.Services, &services); err != nil {
			return out, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if services[name].Phase != plan.Absent {
			out.Services = append(out.Services, name)
		}
	}
	return out, nil
}

// Digest identifies a view: equal views have equal digests.
func (v View) Digest() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(sum, "%d %s %d ", len(name), name, len(v[name]))
		sum.Write(v[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
