package gitsync

import (
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// Changed returns the same paths as git: files, links and folders that were added, removed
// or replaced.
func TestWhatAPushChanged(t *testing.T) {
	o := newOrigin(t)
	first := o.push(
		"one",
		map[string]string{
			"a.cf":          "1",
			"sub/b.cf":      "1",
			"sub/deep/c.cf": "1",
			"same/d.cf":     "1",
			"gone/e.cf":     "1",
			"turns":         "1",
		},
	)
	o.git("rm", "-q", "-r", "gone", "turns")
	second := o.push("two",
		map[string]string{"a.cf": "2", "sub/deep/c.cf": "2", "new/f.cf": "1", "turns/into/a.cf": "1"})
	s, ctx := newSyncer(t), t.Context()
	src := Source{URL: o.bare}
	all := func(string) bool { return true }
	if err := s.Changed(ctx, src, first, second, all); !fault.Is(err, fault.NotFound) {
		t.Errorf("before it is fetched: %v", err)
	}
	fetch(t, s, src)
	changed := func(from, to string) string {
		t.Helper()
		var paths []string
		if err := s.Changed(
			ctx, src, from, to, func(p string) bool { paths = append(paths, p); return true },
		); err != nil {
			t.Fatal(err)
		}
		slices.Sort(paths)
		return strings.Join(paths, " ")
	}
	differing := strings.Fields(o.git("diff", "--name-only", "--no-renames", first, second))
	slices.Sort(differing)
	want := strings.Join(differing, " ")
	if got := changed(first, second); got != want || changed(second, first) != want {
		t.Errorf("%s, git says %s", got, want)
	}
	if got := changed(second, second); got != "" {
		t.Errorf("between a commit and itself: %s", got)
	}
	n := 0
	if err := s.Changed(ctx, src, first, second, func(string) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("visited %d paths, want one: %v", n, err)
	}
	if err := s.Changed(ctx, src, first, strings.Repeat("0", 39)+"1", all); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	if err := s.Changed(ctx, src, "main", second, all); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}
