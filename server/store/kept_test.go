package store_test

import (
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// kept returns what the active version's resources required when they were last kept, by their place in rs.
func kept(t testing.TB, s *store.Store, env intent.EnvironmentID, rs []intent.Resource) string {
	t.Helper()
	active := get(s.ActiveVersion(t.Context(), env))(t)
	var out []string
	for _, r := range get(s.VersionResources(t.Context(), env, active.Number))(t) {
		if r.KeptRequires == nil {
			continue
		}
		line := place(rs, r.ID) + ":"
		for _, id := range r.KeptRequires {
			line += place(rs, id)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func place(rs []intent.Resource, id intent.ResourceID) string {
	return string(rune('0' + slices.IndexFunc(rs, func(r intent.Resource) bool { return r.ID == id })))
}

// with returns the resources with other requirements for number i.
func with(rs []intent.Resource, i int, hash string, requires ...int) []intent.Resource {
	out := slices.Clone(rs)
	out[i].AttributeHash, out[i].Requires = hash, nil
	for _, j := range requires {
		out[i].Requires = append(out[i].Requires, rs[j].ID)
	}
	return out
}

// What a resource required when it was last kept is remembered from the release on in which it is to be purged:
// across versions that change its requirements, that were never released, that leave it out, and that replace only a
// part.
func TestWhatAResourceRequiredWhenItWasKept(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(8) // 4 requires 0, 5 1, 6 2, 7 3
	step := func(what string, want string, next []intent.Resource) {
		t.Helper()
		release(t, s, env, next)
		if got := kept(t, s, env, rs); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	step("all are kept", "", rs)
	get(s.StoreVersion(ctx, version(env, with(rs, 4, "never", 0, 1, 2)), epoch))(t) // a candidate
	step("two go", "4:0", purged(rs, 4, 5))
	step("they require something else", "4:0 5:1", with(with(purged(rs, 4, 6), 4, "other", 7), 5, "nothing"))
	step("the folder goes later", "4:0 5:1", purged(purged(rs, 0, 1), 4, 6))
	step("one is kept again", "5:1", with(purged(purged(rs, 0, 1), 5, 6), 4, "again", 2))
	step("and goes", "4:2 5:1", with(purged(rs, 4, 6), 4, "gone again"))
	step("one is left out", "5:1", slices.Delete(purged(rs, 4, 6), 4, 5))
	step("it is back, and to go", "4:2 5:1", purged(rs, 4, 6))
	step("a kept one is left out", "", slices.Delete(slices.Clone(rs), 6, 7))
	step("it is back, and to go", "6:2", purged(rs, 6, 7))

	// A part of the version is replaced.
	sets := slices.Clone(rs)
	for i := range sets {
		sets[i].ResourceSet = []string{"a", "b"}[i%2]
	}
	step("in sets", "", sets)
	var changed []intent.Resource
	for i, r := range purged(sets, 5, 6) {
		if i%2 == 1 {
			changed = append(changed, r)
		}
	}
	part := version(env, changed)
	part.Partial = &intent.PartialChange{}
	must(t, s.ReleaseVersion(ctx, env, get(s.StoreVersion(ctx, part, epoch))(t), epoch))
	if got := kept(t, s, env, rs); got != "5:1" {
		t.Errorf("in a part: %q", got)
	}

	fresh := newEnvironment(t, s)
	release(t, s, fresh, purged(rs, 0, 8))
	if got := kept(t, s, fresh, rs); got != "" {
		t.Errorf("never kept: %q", got)
	}
}
