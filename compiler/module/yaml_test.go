package module

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Words and numbers mean what they mean in YAML 1.1, with or without a tag.
func TestScalars(t *testing.T) {
	number := func(i int64) *big.Int { return big.NewInt(i) }
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	for text, want := range map[string]any{
		"yes": true, "On": true, "TRUE": true, "no": false, "off": false, "False": false,
		"y": "y", "n": "n", "yEs": "yEs", `"yes"`: "yes", "'no'": "no", "!!str yes": "yes",
		"": nil, "~": nil, "null": nil, "Null": nil, "nULL": "nULL", "!!null x": nil,
		"5": number(5), "-3": number(-3), "+7": number(7), "1_000": number(1000), "0": number(0),
		"017": number(15), "0o17": "0o17", "08": "08", "0x1F": number(31), "0b101": number(5), "-0x10": number(-16),
		"1:30": number(90), "-1:30:00": number(-5400), "1:60": "1:60", "123456789012345678901234567890": huge,
		"1.5": 1.5, "1.": 1.0, ".5": 0.5, "1.0e+3": 1000.0, "1e3": "1e3", "1.0e3": "1.0e3", "-.inf": math.Inf(-1),
		"1:30.5": 90.5, "1_0.5": 10.5, "!!float 5": 5.0, "!!int 017": number(15), "!!bool yes": true,
		"2026-01-02": other("a date"), "2026-1-2 3:04:05": other("a date"), "2026-01-02T03:04:05.6Z": other("a date"),
		"2026-1-2": "2026-1-2", "1.2.3": "1.2.3", "a b": "a b", "!!binary aGVsbG8=": "hello",
	} {
		f, err := parseYAML("project.yml", []byte("x: "+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.root.get("x").is; !cmp.Equal(
			got,
			want,
			cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 }),
		) {
			t.Errorf("%s is %T %v, want %T %v", text, got, got, want, want)
		}
	}
	f, err := parseYAML("project.yml", []byte("x: .nan"))
	if err != nil {
		t.Fatal(err)
	}
	if is, ok := f.root.get("x").is.(float64); !ok || !math.IsNaN(is) {
		t.Errorf(".nan is %v", f.root.get("x").is)
	}
}

// sectionText writes a section as key=value.
func sectionText(s *section) string {
	var all []string
	for i, k := range s.keys {
		all = append(all, fmt.Sprintf("%v=%v", k.is, s.values[i].is))
	}
	return strings.Join(all, " ")
}

// Of a key that is there twice the last one counts; what << brings in gives way to
// the keys of the section itself.
func TestKeysTwiceAndMergedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"x: {a: p, b: q, a: r}":                                 "a=r b=q",
		"y: &y {a: p, b: q}\nx: {b: r, <<: *y}":                 "a=p b=r",
		"x: {<<: [{a: p, b: p}, {b: q}], c: r}":                 "a=p b=q c=r",
		"y: &y {a: p}\nz: &z {<<: *y, b: q}\nx: {<<: *z, c: r}": "a=p b=q c=r",
		"x: {'<<': p}": "<<=p",
	} {
		f, err := parseYAML("project.yml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := sectionText(f.root.get("x").is.(*section)); got != want {
			t.Errorf("%s holds %s, want %s", text, got, want)
		}
	}
}

// Files that would take all memory, or the whole stack, are refused.
func TestHostileYAML(t *testing.T) {
	var laughs, merges strings.Builder
	laughs.WriteString("a0: &a0 [x, x]\n")
	merges.WriteString("a0: &a0 {k0: x}\n")
	for i := 1; i <= 1000; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
		fmt.Fprintf(&merges, "a%d: &a%d {<<: *a%d, k%d: x}\n", i, i, i-1, i)
	}
	if _, err := parseYAML("project.yml", []byte(laughs.String())); err != nil {
		t.Errorf("aliases of aliases: %v", err) // nothing expands them
	}
	for name, c := range map[string]struct{ text, says string }{
		"merges":        {merges.String(), "more than 100000 keys are merged"},
		"deep":          {"x: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "too many lists and sections"},
		"large":         {"x: " + strings.Repeat("y", maxYAMLSize), "larger than"},
		"many problems": {"x: [" + strings.Repeat("!y z, ", 1000) + "]", "and 980 more"},
	} {
		f, err := parseYAML("project.yml", []byte(c.text))
		if f != nil {
			if wrong := f.err(); wrong != nil {
				err = wrong
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 10_000 {
			t.Errorf("%s: %.100v, want %q", name, err, c.says)
		}
	}
}

func TestMailAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"ann@example.com": true, " ann@example.com ": true, "Ann <ann@example.com>": true, "<ann@example.com>": true,
		`"Ann, Esq." <ann@example.com>`: true, "Ann. B. O'Neil <ann.b+c@sub.example.com>": true, "Ünal " +
			"<ü@exämple.com>": true,
		"": false, "ann": false, "ann@": false, "@example.com": false, "ann@localhost": false, "a b@example.com": false,
		"Ann <ann>": false, "Ann ann@example.com": false, "ann@example.com, bob@example.com": false, "ann@.com": false,
		"a..b@example.com": false,
	} {
		if isAddress(text) != want {
			t.Errorf("%q is an address: %t, want %t", text, !want, want)
		}
	}
}

// No text ends the program, and every problem has a line.
func FuzzReadYAML(f *testing.F) {
	f.Add([]byte("name: x\nrequires: [a, b]\n? c\n: !!set {d}\n"))
	f.Add([]byte("x: &a {<<: [*a, {b: 1:30}], c: !!binary aGVsbG8=}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := parseYAML("project.yml", text)
		if err != nil && err.(*Error).At.Start.Line < 1 {
			t.Errorf("%v has no place", err)
		}
		if file != nil {
			file.common()
		}
	})
}
