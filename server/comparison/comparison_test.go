package comparison_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/comparison"
)

// record is a comparison, and counts how often it is read.
type record struct {
	edits []intent.DiffEdit
	reads int
	err   error
}

func (r *record) DiffEdits(_ context.Context, _ intent.Compared, visit func(intent.DiffEdit)) error {
	r.reads++
	for _, e := range r.edits {
		visit(e)
	}
	return r.err
}

func modified(typ string, n int, before, after string) intent.DiffEdit {
	return intent.DiffEdit{
		ID: fmt.Sprintf("%s[agent%d,name=%04d]", typ, n%3, n), Old: int64(2*n + 1), New: int64(2*n + 2),
		Kind: intent.DiffModified, Before: []byte(before), After: []byte(after),
	}
}

// A release puts a word before the descriptions of 60 addresses and moves one to another port; 8 files are new. The
// index counts them, shows the 60 as one change, and pages the rest.
func TestEqualChangesAreOne(t *testing.T) {
	r := &record{}
	for i := range 60 {
		r.edits = append(r.edits, modified("bench::Address", i, fmt.Sprintf(`{"a":1,"description":"address %d"}`, i),
			fmt.Sprintf(`{"a":1,"description":"new address %d"}`, i)))
	}
	r.edits = append(r.edits, modified("bench::Address", 99, `{"port":8080}`, `{"port":8081}`))
	for i := range 8 {
		r.edits = append(r.edits, intent.DiffEdit{
			ID: fmt.Sprintf("fs::File[agent0,path=/f%d]", i), New: 9, Kind: intent.DiffAdded,
		})
	}
	s := comparison.New(r)
	of := intent.Compared{From: 1, To: 2}
	x, err := s.Index(t.Context(), of, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []comparison.Group{{
		Number: 1, Type: "bench::Address", Count: 60, Agents: 3,
		Edits: []comparison.Edit{{Attribute: "description", After: "new "}},
	}}
	if d := cmp.Diff(want, x.Groups(comparison.Filter{})); d != "" {
		t.Error(d)
	}
	if counts := x.Counts(); len(counts) != 4 || counts[0].Type != "bench::Address" ||
		counts[0].Kinds[intent.DiffModified]+counts[1].Kinds[intent.DiffModified]+
			counts[2].Kinds[intent.DiffModified] != 61 || counts[3].Kinds[intent.DiffAdded] != 8 {
		t.Error(x.Counts())
	}
	for name, one := range map[string]struct {
		filter comparison.Filter
		total  int
	}{
		"all": {comparison.Filter{}, 69}, "folded": {comparison.Filter{Folded: true}, 9},
		"group": {comparison.Filter{Group: 1}, 60}, "agent": {comparison.Filter{Agent: "agent1"}, 20},
		"type": {comparison.Filter{Type: "fs::File"}, 8}, "text": {comparison.Filter{Text: "PATH=/F3"}, 1},
		"kind": {comparison.Filter{Kind: intent.DiffAdded}, 8},
	} {
		if page, total := x.Page(one.filter, 0, 50); total != one.total || len(page) != min(50, one.total) {
			t.Errorf("%s: %d of %d, want %d", name, len(page), total, one.total)
		}
	}
	if page, _ := x.Page(comparison.Filter{}, 50, 50); len(page) != 19 || page[18].ID != "fs::File[agent0,path=/f7]" {
		t.Error(page)
	}
	if again, err := s.Index(t.Context(), of, true); again != x || err != nil || r.reads != 1 {
		t.Error("a final index is made again", r.reads)
	}
	if _, err := s.Index(t.Context(), of, false); err != nil || r.reads != 2 {
		t.Error("an index of what changes is kept", r.reads)
	}
}

// A change is told by its words, never by single digits of a number: two ports that go up by one are not equal.
func TestWhatIsEqual(t *testing.T) {
	for name, one := range map[string]struct {
		before, after string
		want          comparison.Edit
	}{
		"insertion": {`"address 1"`, `"new address 1"`, comparison.Edit{After: "new "}},
		"ports":     {`"a:8080 b"`, `"a:8081 b"`, comparison.Edit{Before: "8080", After: "8081"}},
		"whole":     {`"x"`, `"y"`, comparison.Edit{Before: "x", After: "y", Whole: true}},
		"umlaut":    {`"aä b"`, `"aö b"`, comparison.Edit{Before: "aä", After: "aö"}},
		"number":    {`1`, `2`, comparison.Edit{Before: "1", After: "2", Whole: true}},
		"end":       {`"a b"`, `"a b c"`, comparison.Edit{After: " c"}},
	} {
		r := &record{}
		for i := range 5 {
			r.edits = append(r.edits, modified("a::B", i, `{"v":`+one.before+`}`, `{"v":`+one.after+`}`))
		}
		x, err := comparison.New(r).Index(t.Context(), intent.Compared{}, false)
		if err != nil {
			t.Fatal(err)
		}
		one.want.Attribute = "v"
		groups := x.Groups(comparison.Filter{})
		if len(groups) != 1 || cmp.Diff(groups[0].Edits, []comparison.Edit{one.want}) != "" {
			t.Errorf("%s: %+v", name, groups)
		}
	}
}

// A failure is passed on, and not kept.
func TestFailuresAreNotKept(t *testing.T) {
	r := &record{err: errors.New("the database is gone")}
	s := comparison.New(r)
	if _, err := s.Index(t.Context(), intent.Compared{To: 1}, true); err == nil {
		t.Error("no error")
	}
	r.err = nil
	if x, err := s.Index(t.Context(), intent.Compared{To: 1}, true); x == nil || err != nil {
		t.Error(err)
	}
}
