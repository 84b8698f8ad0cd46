package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// purged returns resources of which from..to are to be absent.
func purged(rs []intent.Resource, from, to int) []intent.Resource {
	out := slices.Clone(rs)
	for i := from; i < to; i++ {
		out[i].Purged, out[i].AttributeHash = true, "purged"+out[i].AttributeHash
	}
	return out
}

// heldBecause returns why a release was refused; nothing when it was not.
func heldBecause(t testing.TB, err error) []intent.HoldReason {
	t.Helper()
	if err == nil {
		return nil
	}
	var held *store.HeldError
	if !errors.As(err, &held) || !fault.Is(err, fault.Conflict) {
		t.Fatalf("another error: %v", err)
	}
	return held.Hold.Reasons
}

// Removals are counted: resources that are gone and newly purged ones. A few of many and few in total pass; much and
// everything is held.
func TestLargeRemovalsAreHeld(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	share := []intent.HoldReason{intent.HeldShare}
	for name, c := range map[string]struct {
		before, after []intent.Resource
		settings      map[string]any
		held          []intent.HoldReason
		gone, purged  int
	}{
		"the same":                         {before: resources(50), after: resources(50)},
		"more":                             {before: resources(50), after: resources(90)},
		"a fifth is not more than a fifth": {before: resources(50), after: resources(40)},
		"more than a fifth":                {before: resources(50), after: resources(39), held: share, gone: 11},
		"gone and purged together": {before: resources(50), after: purged(resources(45), 0, 6), held: share,
			gone: 5, purged: 6},
		"few at all": {before: resources(12), after: resources(3)},
		"few at all, and the minimum is less": {before: resources(12), after: resources(3),
			settings: map[string]any{"prune_minimum": 9}, held: share, gone: 9},
		"empty is held however small": {before: resources(2), after: nil,
			held: []intent.HoldReason{intent.HeldEmpty}, gone: 2},
		"empty is held with the guard off": {before: resources(50), after: nil,
			settings: map[string]any{"prune_share": 100}, held: []intent.HoldReason{intent.HeldEmpty}, gone: 50},
		"the guard is off": {before: resources(50), after: resources(1),
			settings: map[string]any{"prune_share": 100}},
		"nothing may go": {before: resources(5000), after: resources(4990),
			settings: map[string]any{"prune_share": 0}, held: share, gone: 10},
		"what was purged goes": {before: purged(resources(60), 20, 60), after: resources(20)},
		"of what is there, not of the purged": {before: purged(resources(60), 20, 60),
			after: purged(resources(60), 8, 60), held: share, purged: 12},
		"others come for those that go": {before: resources(50), after: resources(90)[40:], held: share,
			gone: 40},
		"nothing is active": {after: nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, env := t.Context(), newEnvironment(t, s)
			for key, value := range c.settings {
				must(t, s.SetSetting(ctx, env, key, value))
			}
			if c.before != nil {
				release(t, s, env, c.before)
			}
			n := get(s.StoreVersion(ctx, version(env, c.after), epoch))(t)
			if got := heldBecause(t, s.ReleaseVersion(ctx, env, n, after(1))); !slices.Equal(got, c.held) {
				t.Fatalf("held because of %v, want %v", got, c.held)
			}
			v := get(s.Version(ctx, env, n))(t)
			if v.Held() != (c.held != nil) {
				t.Fatalf("the record says %+v", v)
			}
			if c.held == nil {
				if v.Status != intent.VersionActive {
					t.Errorf("it is %s", v.Status)
				}
				return
			}
			h := v.Hold
			if h.Gone != c.gone || h.Purged != c.purged || len(h.First) != min(c.gone+c.purged, intent.RemovalShown) ||
				h.Before != n-1 ||
				!h.Since.Equal(after(1)) {
				t.Errorf("%+v", h)
			}
			if active := get(s.ActiveVersion(ctx, env))(t); active.Number != n-1 {
				t.Errorf("version %d is active", active.Number)
			}
			for id, st := range states(t, s, env) {
				if st.Orphaned > 0 {
					t.Errorf("%s was touched", id)
				}
			}
		})
	}
}

// A person confirms what was recorded: the version becomes the intent, with who confirmed it and why. What was not
// held, what changed meanwhile and what is protected cannot be confirmed.
func TestConfirming(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	confirm := func(n int) error {
		return s.ConfirmVersion(ctx, env, n,
			intent.Confirmation{By: "ida", Reason: "the east site closes", At: after(9)})
	}
	release(t, s, env, resources(100))
	small := get(s.StoreVersion(ctx, version(env, resources(60)), epoch))(t)
	smaller := get(s.StoreVersion(ctx, version(env, resources(20)), epoch))(t)
	want(t, confirm(small), fault.Conflict) // nobody looked yet; now it is recorded
	if v := get(s.Version(ctx, env, small))(t); !v.Held() || v.Hold.Gone != 40 {
		t.Fatalf("%+v", v.Hold)
	}
	heldBecause(t, s.ReleaseVersion(ctx, env, smaller, epoch))
	if held := get(s.HeldVersions(ctx, env))(t); len(held) != 2 || held[0].Number != smaller {
		t.Fatalf("%+v", held)
	}
	must(t, confirm(small))
	v := get(s.Version(ctx, env, small))(t)
	if v.Status != intent.VersionActive || v.Confirmed == nil || v.Confirmed.By != "ida" || v.Hold == nil || v.Held() {
		t.Fatalf("%+v", v)
	}
	want(t, confirm(small), fault.Conflict)
	// What the smaller version takes away is now compared with another version, so it must be looked at again.
	want(t, confirm(smaller), fault.Conflict)
	if v := get(s.Version(ctx, env, smaller))(t); v.Hold.Gone != 40 || v.Hold.Before != small {
		t.Fatalf("%+v", v.Hold)
	}
	must(t, s.SetSetting(ctx, env, "protected_resources", "fs::File[host3,*"))
	if err := confirm(smaller); !slices.Contains(heldBecause(t, err), intent.HeldProtected) ||
		!strings.Contains(err.Error(), "protected_resources") {
		t.Fatal(err)
	}
	if v := get(s.Version(ctx, env, smaller))(t); v.Hold.ProtectedCount != 10 || len(v.Hold.Protected) != 10 {
		t.Fatalf("%+v", v.Hold)
	}
	must(t, s.SetSetting(ctx, env, "protected_resources", nil))
	must(t, confirm(smaller))
	if n := len(get(s.HeldVersions(ctx, env))(t)); n != 0 {
		t.Errorf("%d are held", n)
	}
	big := get(s.StoreVersion(ctx, version(env, resources(21)), epoch))(t)
	want(t, confirm(big), fault.Conflict)
	if v := get(s.Version(ctx, env, big))(t); v.Released != nil || v.Hold != nil {
		t.Errorf("what is not held was confirmed: %+v", v)
	}
}

// A newer version that takes nothing away overtakes a held one, which is skipped with its hold on record. A plain
// release passes when the guard allows it.
func TestAHeldVersionIsSuperseded(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	release(t, s, env, resources(100))
	heldOne := get(s.StoreVersion(ctx, version(env, nil), epoch))(t)
	heldBecause(t, s.ReleaseVersion(ctx, env, heldOne, epoch))
	release(t, s, env, resources(99))
	if v := get(s.Version(ctx, env, heldOne))(t); v.Status != intent.VersionSkipped || v.Held() || v.Hold == nil {
		t.Errorf("%+v", v)
	}
	want(t, s.ConfirmVersion(ctx, env, heldOne, intent.Confirmation{By: "a", Reason: "b", At: epoch}), fault.Conflict)
	n := get(s.StoreVersion(ctx, version(env, resources(50)), epoch))(t)
	heldBecause(t, s.ReleaseVersion(ctx, env, n, after(1)))
	heldBecause(t, s.ReleaseVersion(ctx, env, n, after(2)))
	if v := get(s.Version(ctx, env, n))(t); !v.Hold.Since.Equal(after(1)) {
		t.Errorf("held since %s", v.Hold.Since)
	}
	must(t, s.SetSetting(ctx, env, "prune_share", 100))
	must(t, s.ReleaseVersion(ctx, env, n, epoch))
	if v := get(s.Version(ctx, env, n))(t); v.Hold != nil || v.Confirmed != nil || v.Status != intent.VersionActive {
		t.Errorf("%+v", v)
	}
}

// A protected resource that is dropped or purged holds a version however small the loss is; one that was purged
// before, or is merely changed, does not.
func TestProtectedResourcesHold(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	all := resources(40)
	for name, c := range map[string]struct {
		before, after []intent.Resource
		held          bool
	}{
		"dropped":              {all, all[:39], true},
		"purged":               {all, purged(all, 39, 40), true},
		"purged and never had": {all[:39], purged(all, 39, 40), true},
		"purged in the first":  {nil, purged(all, 39, 40), true},
		"changed":              {all, changed(all, 39, "x"), false},
		"purged before":        {nil, nil, false},
		"another is dropped":   {all, all[1:], false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t, s)
			before, next := c.before, c.after
			if name == "purged before" { // and changed since
				before, next = purged(all, 39, 40), changed(purged(all, 39, 40), 39, "y")
			}
			if before != nil {
				release(t, s, env, before)
			}
			must(t, s.SetSetting(ctx, env, "protected_resources", all[39].ID.String()))
			n := get(s.StoreVersion(ctx, version(env, next), epoch))(t)
			err := s.ReleaseVersion(ctx, env, n, epoch)
			if (err != nil) != c.held {
				t.Fatal(err)
			}
			if c.held && !strings.Contains(err.Error(), all[39].ID.String()) {
				t.Error(err)
			}
		})
	}
}

// The database and this program agree about which ids a pattern matches.
func TestPatternsMeanTheSameInSQL(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune(`ab%_\*?é.[`)
	word := func(most int, from []rune) string {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteRune(from[random.IntN(len(from))])
		}
		return b.String()
	}
	var all []intent.Resource
	seen := map[string]bool{}
	for len(all) < 60 {
		id := intent.ResourceID{Type: "t::T", Agent: "a", Attribute: "n", Value: word(5, alphabet)}
		if seen[id.String()] {
			continue
		}
		seen[id.String()] = true
		all = append(all, intent.Resource{ID: id, AttributeHash: "x"})
	}
	env := newEnvironment(t, s)
	release(t, s, env, all)
	n := get(s.StoreVersion(ctx, version(env, nil), epoch))(t)
	for range 60 {
		pattern := "t::T[a,n=" + word(5, alphabet) + "*"
		patterns, err := intent.ParsePatterns(pattern)
		if err != nil {
			t.Fatal(err)
		}
		must(t, s.SetSetting(ctx, env, "protected_resources", pattern))
		var wanted []string
		for _, r := range all {
			if patterns.Match(r.ID) {
				wanted = append(wanted, r.ID.String())
			}
		}
		heldBecause(t, s.ReleaseVersion(ctx, env, n, epoch))
		var got []string
		for _, one := range get(s.Version(ctx, env, n))(t).Hold.Protected {
			got = append(got, one.ID.String())
		}
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Fatalf("%s protects %q, want %q", pattern, got, wanted)
		}
	}
}

// The comparison is cheap beside the release that it guards.
func BenchmarkHold(b *testing.B) {
	s := storetest.Open(b)
	const n = 100_000
	rs := resources(n)
	for name, next := range map[string][]intent.Resource{
		"one-change": changed(rs, 7, "x"), "half-gone": rs[:n/2], "half-purged": purged(rs, 0, n/2), "empty": nil,
	} {
		b.Run(name, func(b *testing.B) {
			env := newEnvironment(b, s)
			release(b, s, env, rs)
			must(b, s.SetSetting(b.Context(), env, "protected_resources", "fs::File[host9,*"))
			number := get(s.StoreVersion(b.Context(), version(env, next), epoch))(b)
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				must(b, store.Judge(b.Context(), s, env, number))
				took = append(took, time.Since(begin))
			}
			reportMedian(b, took)
		})
	}
}

// Equal notices are counted until somebody reads one; the next is a new one.
func TestNoticesAreCountedUntilTheyAreRead(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	note := func(title, uri string, second int) {
		t.Helper()
		must(
			t,
			store.AddNotice(
				ctx,
				s,
				env,
				intent.Notice{
					Severity: intent.SeverityError,
					Title:    title,
					Message:  fmt.Sprint("at ", second, "\x00"),
					URI:      uri,
				},
				after(second),
			),
		)
	}
	list := func(filters map[string][]string) []intent.Notification {
		t.Helper()
		return get(s.Notifications(ctx, env, intent.ListQuery{Filters: filters, Sort: "created"}))(t).Items
	}
	note("a", "/x", 1)
	note("a", "/x", 5)
	note("a", "/x", 3) // late
	note("a", "/y", 4)
	note("b", "", 6)
	note("b", "", 7)
	all := list(nil)
	if len(all) != 3 || all[0].Times != 3 || !all[0].Last.Equal(after(5)) || !all[0].Created.Equal(after(1)) ||
		all[2].Times != 2 ||
		all[2].URI != "" {
		t.Fatalf("%+v", all)
	}
	if n := get(s.UnreadNotifications(ctx, env))(t); n != 3 {
		t.Errorf("%d are unread", n)
	}
	yes, no := true, false
	if n := get(s.MarkNotification(ctx, env, all[0].ID, &yes, nil))(t); !n.Read || n.Cleared {
		t.Errorf("%+v", n)
	}
	note("a", "/x", 8)
	if again := list(nil); len(again) != 4 || again[3].Times != 1 {
		t.Fatalf("%+v", again)
	}
	// Back to unread beside its successor: both stay.
	must(t, func() error { _, err := s.MarkNotification(ctx, env, all[0].ID, &no, nil); return err }())
	note("a", "/x", 9)
	if unread := list(map[string][]string{"read": {"false"}, "title": {"A"}}); len(unread) != 3 {
		t.Errorf("%+v", unread)
	}
	_, err := s.MarkNotification(ctx, env, uuid.New(), &yes, nil)
	want(t, err, fault.NotFound)
	_, err = s.Notification(ctx, newEnvironment(t, s), all[0].ID)
	want(t, err, fault.NotFound)
	want(t, store.AddNotice(ctx, s, uuid.New(), intent.Notice{Severity: "info", Title: "x"}, epoch), fault.NotFound)
	if n := get(s.DeleteNotificationsBefore(ctx, env, after(7)))(t); n != 2 { // by the last time that it was said
		t.Errorf("%d were dropped", n)
	}
	must(t, s.MarkNotificationsRead(ctx, env))
	if n := get(s.UnreadNotifications(ctx, env))(t); n != 0 {
		t.Errorf("%d are unread", n)
	}
	long := strings.Repeat("é", 40_000)
	must(t,
		store.AddNotice(ctx, s, env, intent.Notice{Severity: intent.SeverityInfo, Title: "long", Message: long}, epoch))
	if m := list(map[string][]string{"title": {"long"}})[0].Message; len(m) > 33<<10 || !strings.HasSuffix(m, "…") {
		t.Errorf("%d bytes are kept", len(m))
	}
}
