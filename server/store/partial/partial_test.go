package partial_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/partial"
)

func id(name string) intent.ResourceID {
	return intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: name}
}

// read makes resources of lines: "set/name=value > required, required"; a name
// without a set is shared.
func read(lines ...string) []intent.Resource {
	var all []intent.Resource
	for _, line := range lines {
		line, requires, _ := strings.Cut(line, " > ")
		set, name, inSet := strings.Cut(line, "/")
		if !inSet {
			set, name = "", line
		}
		name, value, _ := strings.Cut(name, "=")
		r := intent.Resource{
			ID:          id(name),
			ResourceSet: set,
			Attributes:  json.RawMessage(fmt.Sprintf(`{"v":%q}`, value)),
		}
		for _, q := range strings.FieldsFunc(requires, func(c rune) bool { return c == ',' || c == ' ' }) {
			r.Requires = append(r.Requires, id(q))
		}
		r.AttributeHash = partial.Hash(r.Attributes, r.Requires)
		all = append(all, r)
	}
	return all
}

// write is the opposite of read.
func write(all []intent.Resource) []string {
	var lines []string
	for _, r := range all {
		var attributes struct{ V string }
		_ = json.Unmarshal(r.Attributes, &attributes)
		line := r.ID.Value + "=" + attributes.V
		if r.ResourceSet != "" {
			line = r.ResourceSet + "/" + line
		}
		var requires []string
		for _, q := range r.Requires {
			requires = append(requires, q.Value)
		}
		if len(requires) > 0 {
			line += " > " + strings.Join(requires, ", ")
		}
		lines = append(lines, line)
	}
	return lines
}

func change(removed []string, lines ...string) intent.NewVersion {
	return intent.NewVersion{Resources: read(lines...), Partial: &intent.PartialChange{Removed: removed}}
}

// Sets are replaced, removed and kept; shared resources stay, and require what
// is there.
func TestMerge(t *testing.T) {
	base := []string{"a/a1=1", "a/a2=1 > a1, s1", "b/b1=1", "c/c1=1", "s1=1", "s2=1 > a1, b1, c1"}
	for name, c := range map[string]struct {
		removed []string
		change  []string
		want    []string
	}{
		"a set is replaced whole": {nil, []string{"a/a3=2"},
			[]string{"a/a3=2", "b/b1=1", "c/c1=1", "s1=1", "s2=1 > b1, c1"}},
		"a new set comes": {nil, []string{"d/d1=2"},
			[]string{"a/a1=1", "a/a2=1 > a1, s1", "b/b1=1", "c/c1=1", "d/d1=2", "s1=1", "s2=1 > a1, b1, c1"}},
		"a set goes": {[]string{"c", "unknown"}, nil,
			[]string{"a/a1=1", "a/a2=1 > a1, s1", "b/b1=1", "s1=1", "s2=1 > a1, b1"}},
		"the shared are said again": {nil, []string{"a/a1=2", "s1=1", "s2=1 > a1"},
			[]string{"a/a1=2", "b/b1=1", "c/c1=1", "s1=1", "s2=1 > a1, b1, c1"}},
		"a shared one comes": {nil, []string{"s3=1 > s1", "s1=1"},
			[]string{"a/a1=1", "a/a2=1 > a1, s1", "b/b1=1", "c/c1=1", "s1=1", "s2=1 > a1, b1, c1", "s3=1 > s1"}},
		"one moves between two sets that are exported": {nil, []string{"a/b1=1", "b/a1=1"},
			[]string{"b/a1=1", "a/b1=1", "c/c1=1", "s1=1", "s2=1 > c1"}},
		"one becomes shared": {[]string{"b"}, []string{"b1=1"},
			[]string{"a/a1=1", "a/a2=1 > a1, s1", "b1=1", "c/c1=1", "s1=1", "s2=1 > a1, c1"}},
		"nothing": {nil, nil,
			[]string{"a/a1=1", "a/a2=1 > a1, s1", "b/b1=1", "c/c1=1", "s1=1", "s2=1 > a1, b1, c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := partial.Merge(partial.Base{Number: 4, Resources: read(base...)}, change(c.removed, c.change...))
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(c.want, func(x, y string) int {
				return strings.Compare(x[strings.Index(x, "/")+1:], y[strings.Index(y, "/")+1:])
			})
			if d := cmp.Diff(c.want, write(got.Resources)); d != "" {
				t.Errorf("want -, got +:\n%s", d)
			}
			for _, r := range got.Resources {
				if r.AttributeHash != partial.Hash(r.Attributes, r.Requires) {
					t.Errorf("the hash of %s is not that of its content", r.ID)
				}
			}
			if got.Provenance.PartialBase != 4 {
				t.Errorf("built on version %d", got.Provenance.PartialBase)
			}
		})
	}
}

// What cannot be exported partially says which resource, which sets, and what to do.
func TestRefused(t *testing.T) {
	base := []string{"a/a1=1", "b/b1=1", "s1=1"}
	for name, c := range map[string]struct {
		base, removed, change []string
		says                  string
	}{
		"removed and exported": {base, []string{"a"}, []string{"a/a1=1"},
			"the resource set a is to be removed and is in the export"},
		"a shared one changes": {base, nil, []string{"s1=2"},
			"lab::Note[a,n=s1] is in no resource set, and a partial export would change it"},
		"one moves from a kept set": {base, nil, []string{"a/b1=1"},
			"lab::Note[a,n=b1] would move from the resource set b to the resource set a"},
		"a shared one moves": {base, nil, []string{"a/s1=1"},
			"lab::Note[a,n=s1] would move from the shared resources to the resource set a"},
		"one of a kept set is freed": {base, nil, []string{"b1=1"},
			"from the resource set b to the shared resources"},
		"sets depend on each other": {base, nil, []string{"a/a1=1 > b1", "b/b1=1"},
			"lab::Note[a,n=a1] in the resource set a requires lab::Note[a,n=b1], which is in the resource set b"},
		"it requires what is not in it": {base, nil, []string{"a/a1=1 > b1"}, "which is not part of this export"},
		"a set requires a shared one that is not in it": {base, nil, []string{"a/a1=1 > s1"},
			"lab::Note[a,n=s1], which is not part of this export"},
		"a shared one requires a shared one that is not in it": {base, nil, []string{"s2=1 > s1"},
			"the resource lab::Note[a,n=s2] in the shared resources requires lab::Note[a,n=s1], which is not part"},
		"a shared one requires what nobody has": {base, nil, []string{"s2=1 > x1"},
			"lab::Note[a,n=x1], which is not part"},
		"the base is tangled": {[]string{"a/a1=1 > b1", "b/b1=1"}, nil, []string{"c/c1=1"},
			"version 4 cannot be changed set by set: the resource lab::Note[a,n=a1]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := partial.Merge(partial.Base{Number: 4, Resources: read(c.base...)}, change(c.removed, c.change...))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "compile the whole model") {
				t.Errorf("got %v\nwant %s", err, c.says)
			}
		})
	}
}

// The code of a type changes only with all of its resources.
func TestCode(t *testing.T) {
	code := func(hash string) []intent.ResourceCode {
		return []intent.ResourceCode{{Type: "lab::Note", Sources: []intent.SourceFile{{Hash: hash}}}}
	}
	base := partial.Base{Resources: read("a/a1=1", "b/b1=1"), Code: code("old")}
	part := change(nil, "a/a1=2")
	part.Code = code("new")
	if _, err := partial.Merge(base, part); err == nil ||
		!strings.Contains(err.Error(), "the code of lab::Note changed") {
		t.Error(err)
	}
	part.Partial.AllowCode = true
	if got, err := partial.Merge(base, part); err != nil || got.Code[0].Sources[0].Hash != "new" {
		t.Error(got.Code, err)
	}
	part = change([]string{"b"}, "a/a1=2")
	part.Code = code("new")
	if got, err := partial.Merge(base, part); err != nil || got.Code[0].Sources[0].Hash != "new" || len(got.Code) != 1 {
		t.Error(got.Code, err)
	}
	part = change([]string{"a"})
	if got, err := partial.Merge(base, part); err != nil || len(got.Code) != 1 || got.Code[0].Sources[0].Hash != "old" {
		t.Error(got.Code, err)
	}
}

// Unknown parameters stay with the resources that stay.
func TestUnknowns(t *testing.T) {
	base := partial.Base{Resources: read("a/a1=1", "b/b1=1", "c/c1=1"), Unknowns: []intent.Unknown{
		{
			Parameter: "p",
			Resource:  id("a1"),
		}, {Parameter: "p", Resource: id("b1")}, {Parameter: "p", Resource: id("c1")}, {Parameter: "free"},
	}}
	part := change([]string{"c"}, "a/a2=1")
	part.Unknowns = []intent.Unknown{{Parameter: "q", Resource: id("a2")}, {Parameter: "free"}}
	got, err := partial.Merge(base, part)
	if err != nil {
		t.Fatal(err)
	}
	want := []intent.Unknown{
		{Parameter: "q", Resource: id("a2")},
		{Parameter: "free"},
		{Parameter: "p", Resource: id("b1")},
	}
	if d := cmp.Diff(want, got.Unknowns); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

// Whatever sets are exported, those that are not stay as they are, byte for
// byte, what is exported is there as exported, and nothing requires what is gone.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resources := func(label string, sets []string) []intent.Resource {
			var lines, names []string
			for _, set := range sets {
				for i := range rapid.IntRange(1, 3).Draw(t, label+set) {
					name := fmt.Sprintf("%s%d", set, i)
					line := set + "/" + name + "=" + rapid.StringMatching(`[a-z]`).Draw(t, "value")
					if i > 0 {
						line += " > " + set + "0"
					}
					lines, names = append(lines, line), append(names, name)
				}
			}
			if label == "base" {
				lines = append(lines, "s=1 > "+strings.Join(names, ", "))
			}
			return read(lines...)
		}
		subset := func(label string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string]).
				Draw(t, label)
		}
		base, exported := resources("base", subset("base sets")), subset("exported sets")
		removed := slices.DeleteFunc(subset("removed sets"),
			func(s string) bool { return slices.Contains(exported, s) })
		part := intent.NewVersion{
			Resources: resources("change", exported),
			Partial:   &intent.PartialChange{Removed: removed},
		}
		got, err := partial.Merge(partial.Base{Number: 1, Resources: base}, part)
		if err != nil {
			t.Fatal(err)
		}
		there := map[intent.ResourceID]intent.Resource{}
		for _, r := range got.Resources {
			there[r.ID] = r
		}
		kept := slices.DeleteFunc(slices.Clone(base), func(r intent.Resource) bool {
			return r.ResourceSet == "" || slices.Contains(exported, r.ResourceSet) ||
				slices.Contains(removed, r.ResourceSet)
		})
		for _, r := range append(kept, part.Resources...) {
			if d := cmp.Diff(r, there[r.ID]); d != "" {
				t.Fatalf("%s:\n%s", r.ID, d)
			}
		}
		if len(got.Resources) != len(kept)+len(part.Resources)+1 {
			t.Fatalf("%d resources", len(got.Resources))
		}
		for _, r := range got.Resources {
			for _, q := range r.Requires {
				if _, ok := there[q]; !ok {
					t.Fatalf("%s requires %s, which is gone", r.ID, q)
				}
			}
		}
	})
}
