package store_test

import (
	"sync"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

// inSets puts resources into sets, in turn.
func inSets(rs []intent.Resource, sets ...string) []intent.Resource {
	for i := range rs {
		rs[i].ResourceSet, rs[i].Requires = sets[i%len(sets)], nil
	}
	return rs
}

// A partial export becomes a whole version: the newest one, released or not, with one set replaced and one removed.
// An export that breaks a rule stores nothing.
func TestPartialExportBuildsOnTheNewestVersion(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	part := func(rs []intent.Resource, removed ...string) intent.NewVersion {
		v := version(env, rs)
		v.Partial = &intent.PartialChange{Removed: removed}
		return v
	}
	_, err := s.StoreVersion(ctx, part(nil), epoch)
	want(t, err, fault.Invalid)
	all := inSets(resources(9), "a", "b", "c")
	release(t, s, env, all[:8])
	whole := version(env, all)
	whole.Provenance.UnmanagedAgents = []string{"rack"}
	get(s.StoreVersion(ctx, whole, epoch))(t) // version 2, a candidate
	one := all[0]
	one.AttributeHash = "new"
	one.Undefined = []string{"x"}
	v := part([]intent.Resource{one}, "b")
	v.Provenance.UnmanagedAgents = []string{"desk", "rack"}
	if n := get(s.StoreVersion(ctx, v, epoch))(t); n != 3 || get(s.StoreVersion(ctx, v, epoch))(t) != 3 {
		t.Fatalf("version %d", n)
	}
	got := map[string]string{}
	for _, r := range get(s.VersionResources(ctx, env, 3))(t) {
		got[r.ID.String()] = r.ResourceSet + " " + r.AttributeHash
	}
	if len(got) != 4 || got[one.ID.String()] != "a new" || got[all[8].ID.String()] != "c "+all[8].AttributeHash {
		t.Errorf("version 3 has %v", got)
	}
	info := get(s.Version(ctx, env, 3))(t)
	if info.Total != 4 || info.Provenance.PartialBase != 2 || info.Provenance.Commit != v.Provenance.Commit {
		t.Errorf("%+v", info)
	}
	one.ResourceSet = "c"
	_, err = s.StoreVersion(ctx, part([]intent.Resource{one}), epoch)
	want(t, err, fault.Invalid)
	if agents := get(s.UnmanagedAgents(ctx, env))(t); len(agents) != 0 {
		t.Errorf("a version that is not released leaves the agents %v to themselves", agents)
	}
	must(t, s.ReleaseVersion(ctx, env, 3, epoch))
	if agents := get(s.UnmanagedAgents(ctx, env))(t); len(agents) != 2 || !agents["desk"] || !agents["rack"] {
		t.Errorf("the agents that the server does not run are %v", agents)
	}

	// Of two at once each builds on the other's version, in some order.
	var wait sync.WaitGroup
	for _, set := range []string{"d", "e"} {
		wait.Go(func() {
			r := all[0]
			r.ID.Value, r.ResourceSet = "/"+set, set
			if _, err := s.StoreVersion(ctx, part([]intent.Resource{r}), epoch); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if v := get(s.Version(ctx, env, 5))(t); v.Total != 6 || v.Provenance.PartialBase != 4 {
		t.Errorf("%+v", v)
	}
}
