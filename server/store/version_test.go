package store_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

func TestVersionComesBackAsItWasStored(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(9)
	rs[3].Undefined, rs[3].ResourceSet, rs[3].Purged, rs[3].ReceiveEvents = []string{"content"}, "set", true, true
	rs[4].Attributes = json.RawMessage(`{"odd":"\u0000 \ud800","n":1e400}`)
	v := version(env, rs)
	v.Origins = []byte{0, 1, 2}
	slices.Reverse(v.Resources)
	n := get(s.StoreVersion(ctx, v, epoch))(t)
	if n != 1 || get(s.StoreVersion(ctx, v, epoch))(t) != 1 {
		t.Fatal("numbers count up from 1, and the same compile gets the same")
	}
	if n := get(s.StoreVersion(ctx, version(env, nil), epoch))(t); n != 2 {
		t.Fatalf("the next version is %d", n)
	}
	got := get(s.VersionResources(ctx, env, 1))(t)
	slices.SortFunc(v.Resources,
		func(a, b intent.Resource) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for i := range v.Resources {
		v.Resources[i].Version = 1
	}
	if d := cmp.Diff(v.Resources, got); d != "" {
		t.Error(d)
	}
	if r := get(s.VersionResource(ctx, env, 1, v.Resources[5].ID))(t); !cmp.Equal(r, v.Resources[5]) {
		t.Error(cmp.Diff(v.Resources[5], r))
	}
	code, pip, err := s.VersionCode(ctx, env, 1)
	must(t, err)
	if !cmp.Equal(code, v.Code) || !cmp.Equal(pip, v.Pip) {
		t.Errorf("code %v, pip %v", code, pip)
	}
	if origins := get(s.VersionOrigins(ctx, env, 1))(t); !slices.Equal(origins, v.Origins) {
		t.Errorf("origins %v", origins)
	}
	if origins := get(s.VersionOrigins(ctx, env, 2))(t); origins != nil {
		t.Errorf("version 2 has origins %v", origins)
	}
	_, err = s.VersionOrigins(ctx, env, 3)
	want(t, err, fault.NotFound)
	info := get(s.Version(ctx, env, 1))(t)
	if info.Status != intent.VersionCandidate || info.Total != 9 || info.Provenance.Commit != v.Provenance.Commit ||
		!info.Created.Equal(epoch) ||
		info.Released != nil {
		t.Errorf("%+v", info)
	}
	_, err = s.VersionResources(ctx, env, 3)
	want(t, err, fault.NotFound)
	_, err = s.VersionResource(ctx, env, 2, file("host0", 0))
	want(t, err, fault.NotFound)
	_, _, err = s.VersionCode(ctx, env, 3)
	want(t, err, fault.NotFound)
	_, err = s.StoreVersion(ctx, version(uuid.New(), nil), epoch)
	want(t, err, fault.NotFound)
	_, err = s.StoreVersion(ctx, version(env, append(resources(2), resources(1)...)), epoch)
	want(t, err, fault.Invalid)
}

func TestReleaseMovesVersionsThroughTheirStates(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	for i := range 4 {
		get(s.StoreVersion(ctx, version(env, changed(resources(3), 0, string(rune('a'+i)))), epoch))(t)
	}
	must(t, s.ReleaseVersion(ctx, env, 1, epoch))
	must(t, s.ReleaseVersion(ctx, env, 3, after(1)))
	for i, status := range []intent.VersionStatus{intent.VersionRetired, intent.VersionSkipped, intent.VersionActive,
		intent.VersionCandidate} {
		if v := get(s.Version(ctx, env, i+1))(t); v.Status != status {
			t.Errorf("version %d is %s, want %s", i+1, v.Status, status)
		}
	}
	if v := get(s.ActiveVersion(ctx, env))(t); v.Number != 3 || !v.Released.Equal(after(1)) {
		t.Errorf("active: %+v", v)
	}
	want(t, s.ReleaseVersion(ctx, env, 3, epoch), fault.Conflict)
	want(t, s.ReleaseVersion(ctx, env, 1, epoch), fault.Conflict)
	want(t, s.ReleaseVersion(ctx, env, 2, epoch), fault.Conflict)
	want(t, s.ReleaseVersion(ctx, env, 9, epoch), fault.NotFound)
	want(t, s.DeleteVersion(ctx, env, 3), fault.Conflict)
	must(t, s.DeleteVersion(ctx, env, 4))
	want(t, s.DeleteVersion(ctx, env, 4), fault.NotFound)
	if n := get(s.StoreVersion(ctx, version(env, nil), epoch))(t); n != 5 {
		t.Errorf("a number means two things: %d", n)
	}
}

// A new intent gives changed resources an update, makes orphans of those that are gone, deploys again those that come
// back, and leaves the rest untouched.
func TestReleaseSaysWhatIsToDo(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(8)
	n := release(t, s, env, rs)
	for id, st := range states(t, s, env) {
		if st.Compliance != intent.HasUpdate || st.LastRun != intent.RunNew || st.Status() != intent.StatusAvailable {
			t.Fatalf("%s is new: %+v", id, st)
		}
	}
	var done []intent.FinishedAction
	for _, st := range states(t, s, env) {
		done = append(done, deployed(st, n, 10))
	}
	must(t, s.FinishActions(ctx, env, done))
	release(t, s, env, changed(rs[:7], 2, "other"))
	now := states(t, s, env)
	for i, r := range rs {
		st := now[r.ID]
		status := intent.StatusDeployed
		switch i {
		case 2:
			status = intent.StatusAvailable
		case 7:
			status = intent.StatusOrphaned
		}
		if st.Status() != status || i == 7 && st.Orphaned != 1 {
			t.Errorf("resource %d: %s, %+v", i, st.Status(), st)
		}
	}
	if counts := get(s.ResourceCounts(ctx, env))(t); !cmp.Equal(
		counts,
		map[intent.Status]int{intent.StatusDeployed: 6, intent.StatusAvailable: 1},
	) {
		t.Errorf("counts: %v", counts)
	}
	release(t, s, env, rs) // back to what is deployed
	for id, st := range states(t, s, env) {
		expected := intent.Compliant
		if id == rs[7].ID {
			expected = intent.HasUpdate // nobody looked after it while it was an orphan
		}
		if st.Compliance != expected || st.Orphaned != 0 {
			t.Errorf("%s is not as it was deployed: %+v", id, st)
		}
	}
}

// A resource with an unknown value is not deployed, nor is anything that depends on it, however indirectly; once the
// value is known all of them are free.
func TestUndefinedBlocksAllBehindIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	rs := resources(20) // four chains
	undefined := changed(rs, 5, "unknown")
	undefined[5].Undefined = []string{"content"}
	release(t, s, env, undefined)
	for i, r := range rs {
		st := states(t, s, env)[r.ID]
		status := intent.StatusAvailable
		switch {
		case i == 5:
			status = intent.StatusUndefined
		case i > 5 && i%4 == 1:
			status = intent.StatusSkippedForUndefined
		}
		if st.Status() != status {
			t.Errorf("resource %d is %s, want %s", i, st.Status(), status)
		}
	}
	release(t, s, env, rs)
	for id, st := range states(t, s, env) {
		if st.Blocked != intent.NotBlocked || st.Compliance != intent.HasUpdate {
			t.Errorf("%s: %+v", id, st)
		}
	}
	release(t, s, env, undefined)
	if st := states(t, s, env)[rs[9].ID]; st.Blocked != intent.IsBlocked || st.Compliance != intent.HasUpdate {
		t.Errorf("blocked again: %+v", st)
	}
}

// A purged resource that leaves the model takes nothing away, but is an orphan all the same; one that stays is not.
func TestPurgedResourcesThatLeaveAreOrphans(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	rs := resources(3)
	rs[2].Purged = true
	release(t, s, env, rs)
	second := release(t, s, env, rs[:2])
	got := states(t, s, env)
	if got[rs[0].ID].Orphaned != 0 || got[rs[1].ID].Orphaned != 0 || got[rs[2].ID].Orphaned != second-1 {
		t.Errorf("%+v", got)
	}
}

func TestDiffOfVersions(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(6)
	rs[1].Attributes, rs[1].AttributeHash = json.RawMessage(`{"a":1,"b":[1,2],"gone":true}`), "one"
	get(s.StoreVersion(ctx, version(env, rs[:5]), epoch))(t)
	next := append([]intent.Resource(nil), rs...)
	next[1].Attributes, next[1].AttributeHash = json.RawMessage(`{"b":[1,2],"a":2,"new":null}`), "two"
	next[2].ResourceSet = "only the set changed"
	get(s.StoreVersion(ctx, version(env, next[1:]), epoch))(t)
	kinds := map[intent.ResourceID]intent.DiffKind{}
	for _, d := range get(s.DiffVersions(ctx, env, 1, 2))(t) {
		kinds[d.ID] = d.Kind
		if d.Kind == intent.DiffModified {
			expected := map[string]intent.AttributeChange{
				"a": {Current: json.Number("1"), Desired: json.Number("2")}, "gone": {Current: true}, "new": {},
			}
			if !cmp.Equal(d.Attributes, expected) {
				t.Error(cmp.Diff(expected, d.Attributes))
			}
		}
	}
	if expected := map[intent.ResourceID]intent.DiffKind{rs[0].ID: intent.DiffDeleted, rs[1].ID: intent.DiffModified,
		rs[5].ID: intent.DiffAdded}; !cmp.Equal(kinds, expected) {
		t.Error(cmp.Diff(expected, kinds))
	}
	_, err := s.DiffVersions(ctx, env, 1, 3)
	want(t, err, fault.NotFound)
}

// Old versions are deleted; what a remaining version or a living resource needs stays.
func TestPruneKeepsWhatIsStillNeeded(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	rs := resources(6)
	release(t, s, env, rs)
	release(t, s, env, rs[:5])
	for i := range 4 {
		release(t, s, env, changed(rs[:5], 0, string(rune('a'+i))))
	}
	if n := get(s.PruneVersions(ctx, env, 2))(t); n != 3 {
		t.Fatalf("%d versions were pruned", n)
	}
	if page := get(s.Versions(ctx, env, intent.ListQuery{}))(t); page.Total != 3 || page.Items[0].Number != 6 ||
		page.Items[2].Number != 4 {
		t.Fatalf("left: %+v", page)
	}
	for _, number := range []int{4, 5, 6} {
		if got := get(s.VersionResources(ctx, env, number))(t); len(got) != 5 {
			t.Errorf("version %d has %d resources", number, len(got))
		}
	}
	if _, known := states(t, s, env)[rs[5].ID]; known {
		t.Error("an orphan that no version has is still known")
	}
	_, err := s.Version(ctx, env, 1)
	want(t, err, fault.NotFound)
	must(t, s.DeleteVersion(ctx, env, 5))
	if n := get(s.PruneVersions(ctx, env, 0))(t); n != 1 {
		t.Errorf("%d more versions were pruned", n)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	name := get(s.PutFile(ctx, []byte("hello\x00")))(t)
	if name != get(s.PutFile(ctx, []byte("hello\x00")))(t) || string(get(s.File(ctx, name))(t)) != "hello\x00" {
		t.Error("the content is not what was put")
	}
	empty := get(s.PutFile(ctx, nil))(t)
	if empty != "da39a3ee5e6b4b0d3255bfef95601890afd80709" {
		t.Error(empty)
	}
	other := "0000000000000000000000000000000000000000"
	if missing := get(s.MissingFiles(ctx, []string{name, other, empty}))(t); !cmp.Equal(missing, []string{other}) {
		t.Error(missing)
	}
	_, err := s.File(ctx, other)
	want(t, err, fault.NotFound)
}

// Resources that require each other in a circle cannot be deployed in any order: such a version is not stored, and
// the error names the circle.
func TestACircleIsNotStored(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	rs := resources(20) // 4 ← 8 ← 12 ← 16
	rs[8].Requires = append(rs[8].Requires, rs[16].ID)
	_, err := s.StoreVersion(t.Context(), version(env, rs), epoch)
	want(t, err, fault.Invalid)
	text := err.Error()
	if !strings.Contains(
		text,
		rs[16].ID.String()+" requires "+rs[12].ID.String()+" requires "+rs[8].ID.String()+" requires "+
			""+rs[16].ID.String(),
	) &&
		!strings.Contains(
			text,
			rs[8].ID.String()+" requires "+rs[16].ID.String()+" requires "+rs[12].ID.String()+" requires "+
				""+rs[8].ID.String(),
		) {
		t.Error(text)
	}
	own := resources(3)
	own[1].Requires = []intent.ResourceID{own[1].ID}
	_, err = s.StoreVersion(t.Context(), version(env, own), epoch)
	want(t, err, fault.Invalid)
	missing := resources(3)
	missing[1].Requires = []intent.ResourceID{file("nowhere", 1)} // what is not there cannot be waited for
	if n := get(s.StoreVersion(t.Context(), version(env, missing), epoch))(t); n != 1 {
		t.Errorf("the refused ones used up numbers: %d", n)
	}
	long := resources(3)
	for i := range 30 {
		long = append(
			long,
			intent.Resource{
				ID:            file("ring", i),
				AttributeHash: "x",
				Requires:      []intent.ResourceID{file("ring", (i+1)%30)},
			},
		)
	}
	if _, err = s.StoreVersion(t.Context(), version(env, long), epoch); err == nil ||
		!strings.Contains(err.Error(), "…") {
		t.Error(err)
	}
}

// A version that contains a resource twice is refused; the error names the resource, and nothing is stored.
func TestAResourceTwiceIsNotStored(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	rs := resources(4)
	again := rs[2]
	again.AttributeHash = "other"
	_, err := s.StoreVersion(t.Context(), version(env, append(rs, again)), epoch)
	want(t, err, fault.Invalid)
	if !strings.Contains(err.Error(), again.ID.String()+" twice") {
		t.Error(err)
	}
	if n := get(s.StoreVersion(t.Context(), version(env, rs), epoch))(t); n != 1 {
		t.Errorf("the refused one used up a number: %d", n)
	}
}

// An attribute of ten megabytes is stored; one beyond the limit is refused, and the error names it.
func TestLargeAttributes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	rs := resources(2)
	rs[0].Attributes = json.RawMessage(`{"content":"` + strings.Repeat("x", 10<<20) + `"}`)
	n := get(s.StoreVersion(t.Context(), version(env, rs), epoch))(t)
	if got := get(s.VersionResource(t.Context(), env, n, rs[0].ID))(t); len(got.Attributes) != len(rs[0].Attributes) {
		t.Errorf("%d bytes came back", len(got.Attributes))
	}
	rs[0].Attributes = json.RawMessage(`{"content":"` + strings.Repeat("x", intent.MaxAttributes) + `"}`)
	_, err := s.StoreVersion(t.Context(), version(env, rs), epoch)
	want(t, err, fault.Invalid)
	if !strings.Contains(err.Error(), rs[0].ID.String()) || !strings.Contains(err.Error(), "16 MiB") {
		t.Error(err)
	}
}
