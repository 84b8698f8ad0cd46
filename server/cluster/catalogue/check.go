package catalogue

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxName is how long names may be.
const maxName = 200

var nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// CheckName returns what is wrong with the name of an entity, or nothing.
func CheckName(name string) string {
	switch {
	case name == "":
		return "a name is missing"
	case len(name) > maxName:
		return "the name has more than " + strconv.Itoa(maxName) + " characters"
	case !nameForm.MatchString(name), name == ".", name == "..":
		return "a name consists of letters, digits, '.', '_' and '-'"
	}
	return ""
}

func checkHead(e Entity, to *problems) {
	h := e.head()
	if text := CheckName(h.Name); text != "" {
		to.add("name", "%s", text)
	}
	for _, one := range []struct {
		field, text string
		most        int
	}{{"label", h.Label, 1000}, {"description", h.Description, 10_000}, {"icon", h.Icon, 100_000}} {
		if len(one.text) > one.most {
			to.add(one.field, "it has %d bytes, and may have %d", len(one.text), one.most)
		}
	}
	if h.Version < 0 {
		to.add("version", "versions count from 1")
	}
}

// Check returns all that is wrong with an entity in a catalogue, which need not have it: it is judged as if it stood
// there in place of another one of its name.
func Check(c *Catalogue, e Entity) []Problem {
	return check(c.With(e), e)
}

// check judges an entity of a catalogue.
func check(c *Catalogue, e Entity) []Problem {
	k := &checker{c: c}
	checkHead(e, &k.problems)
	switch e := e.(type) {
	case *PluginType:
		k.pluginType(e)
	case *Provider:
		k.provider(e)
	case *HardwareType:
		k.providerMap(e.ProviderMap, "flavor")
	case *ImageType:
		k.providerMap(e.ProviderMap, "image")
	case *Service:
		k.service(e)
	case *Partial:
		k.compatibility(e.Compatibility)
		k.defaults(e.Defaults)
	case *Template:
		k.template(e)
	}
	return k.problems
}

// Ref names an entity.
type Ref struct {
	Kind Kind
	Name string
}

// String returns "the hardware type small".
func (r Ref) String() string { return "the " + r.Kind.Noun() + " " + r.Name }

// RefOf returns the name of an entity.
func RefOf(e Entity) Ref { return Ref{e.Kind(), e.head().Name} }

// CheckAll checks all entities of a catalogue, and returns the problems of those that have some.
func CheckAll(c *Catalogue) map[Ref][]Problem {
	out := map[Ref][]Problem{}
	for _, e := range c.All() {
		if found := check(c, e); len(found) > 0 {
			out[RefOf(e)] = found
		}
	}
	return out
}

// Breaks returns the entities that are in both catalogues, with the problems that they have only in the second one.
// So it says what a change, or a deletion, would do to others.
func Breaks(before, after *Catalogue) map[Ref][]Problem {
	now := CheckAll(after)
	for ref, found := range now {
		e := before.Get(ref.Kind, ref.Name)
		if e == nil || e != after.Get(ref.Kind, ref.Name) {
			delete(now, ref) // it is what changes
			continue
		}
		had := check(before, e)
		found = slices.DeleteFunc(found, func(p Problem) bool { return slices.Contains(had, p) })
		if now[ref] = found; len(found) == 0 {
			delete(now, ref)
		}
	}
	return now
}

// checker judges one entity of a catalogue.
type checker struct {
	c *Catalogue
	problems
}

// exists adds a problem unless the catalogue has an entity.
func (k *checker) exists(field string, kind Kind, name string) bool {
	if k.c.Get(kind, name) != nil {
		return true
	}
	if name == "" {
		k.add(field, "the name of a %s is missing", kind.Noun())
		return false
	}
	k.add(field, "there is no %s %.100q%s", kind.Noun(), name, k.similar(kind, name))
	return false
}

// similar suggests names for one that does not exist.
func (k *checker) similar(kind Kind, name string) string {
	var out []string
	for _, e := range k.c.All() {
		if e.Kind() == kind && near(e.head().Name, name) {
			out = append(out, e.head().Name)
		}
	}
	if len(out) == 0 || len(out) > 5 {
		return ""
	}
	return "; did you mean " + strings.Join(out, " or ") + "?"
}

// near reports whether two names differ in case, in separators, or in one character at most.
func near(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "", ".", "")
	a, b = strings.ToLower(plain.Replace(a)), strings.ToLower(plain.Replace(b))
	if a == b {
		return true
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 3 || len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return a[i+1:] == b[i+1:] || i+2 <= len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
	return a[i:] == b[i+1:]
}

func (k *checker) allExist(field string, kind Kind, names []string) {
	for i, name := range names {
		k.exists(index(field, i), kind, name)
		if slices.Contains(names[:i], name) {
			k.add(index(field, i), "%.100q stands in the list twice", name)
		}
	}
}
