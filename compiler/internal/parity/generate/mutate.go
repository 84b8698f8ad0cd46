package generate

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Mutants changes a small part of a case of a corpus: a word, a literal, a type, an
// operator, a multiplicity or a line. Most mutants are wrong programs, so they mainly
// compare errors: which one, its kind and its place. The same seed and corpus always
// make the same mutant.
func Mutants(corpus []parity.Case) func(seed uint64) parity.Case {
	corpus = slices.DeleteFunc(slices.Clone(corpus), func(c parity.Case) bool { return !mutable(c) })
	return func(seed uint64) parity.Case { return mutant(corpus, seed) }
}

func mutant(corpus []parity.Case, seed uint64) parity.Case {
	m := mutator{rand.New(rand.NewPCG(seed, 22))}
	of := corpus[m.IntN(len(corpus))]
	files := map[string]string{}
	models := []string{"main.cf", "main.cf", "main.cf"}
	for path, text := range of.Files {
		files[path] = text
		if strings.HasSuffix(path, ".cf") {
			models = append(models, path)
		}
	}
	slices.Sort(models)
	path := models[m.IntN(len(models))]
	for range []int{1, 1, 1, 2, 3}[m.IntN(5)] {
		files[path] = m.change(files[path])
	}
	c := of
	c.Area, c.Name, c.Files = "mutated", fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(of.Area, "/", "-"), of.Name,
		seed), files
	return c
}

// mutable reports whether mutants of a case are worth comparing. Cases with std take long
// and find little more, and a partial export depends on an earlier export.
func mutable(c parity.Case) bool { return !c.Std && !c.Partial }

type mutator struct{ *rand.Rand }

// pieces are the parts of a line that a mutation removes, duplicates, swaps or replaces.
var pieces = regexp.MustCompile(
	`"""(?s:.*?)"""|[fFrR]?"(?:\\.|[^"\\\n])*"|[fFrR]?'(?:\\.|[^'\\\n])*'|/[^/\n]*/|` +
		`[A-Za-z_][A-Za-z0-9_-]*|::|--|->|<-|[!=<>]=|\+=|\*\*|-?[0-9]*\.[0-9]+|-?[0-9]+|#[^\n]*|\s+|(?s:.)`,
)

var (
	keywords = strings.Fields(
		"typedef as entity extends end in implementation for matching index implement using when and or not true " +
			"false import is defined dict null undef parents if else elif",
	)
	operators = strings.Fields("== != < > <= >= + - * / % ** and or in . :: = += , : ? -- -> <- [ ] ( ) { }")
	literals  = []string{
		"1",
		"-1",
		"0",
		"1.5",
		".5",
		`"x"`,
		"''",
		"true",
		"false",
		"null",
		"[]",
		"{}",
		"[1]",
		`["a", "b"]`,
		`{"a": 1}`,
		"self",
		`"{{x}}"`,
		`f"{x}"`,
		`r"a"`,
		"std::Entity()",
		"[x for x in [1]]",
		"x is defined",
		"(1)",
		"not true",
		"1 + 1",
		"true ? 1 : 2",
		`"""m"""`,
		"1 == 1",
		"undef",
	}
	types      = strings.Fields("string int bool float number list dict string[] int? string[]? dict? any object")
	multiples  = strings.Fields("[1] [0:1] [0:] [1:] [:2] [2] [2:3] [0] [1:0] [] [-1] [1.0]")
	statements = []string{
		"x = 1\n", "x = null\n", "y = \"q\"\n", "for i in [1, 2]:\n  z = i\nend\n",
		"if true:\n  w = 1\nelse:\n  w = 2\nend\n", "entity Zz:\nend\n",
		"typedef tt as int matching self > 0\n", "import std\n", "implementation qq for std::Entity:\nend\n",
		"implement std::Entity using none\n",
		"index std::Entity(requires)\n", "std::Entity()\n", "x\n", "\"doc\"\n", "\"\"\"mls\"\"\"\n", "self.x = 1\n",
		"std::Entity.zz [0:1] -- std::Entity\n",
	}
	beginsLiteral = regexp.MustCompile(`^(["'0-9\[-]|true|false|null)`)
	beginsName    = regexp.MustCompile(`^[A-Za-z_]`)
)

func (m mutator) one(of []string) string { return of[m.IntN(len(of))] }

func (m mutator) change(text string) string {
	parts := pieces.FindAllString(text, -1)
	where := func(fits func(string) bool) (at []int) {
		for i, p := range parts {
			if strings.TrimSpace(p) != "" && !strings.HasPrefix(p, "#") && fits(p) {
				at = append(at, i)
			}
		}
		return at
	}
	all := where(func(string) bool { return true })
	if len(all) == 0 {
		return text + m.one(statements)
	}
	at := all[m.IntN(len(all))]
	// put replaces one of the parts that fit, or any part if none does.
	put := func(fits func(string) bool, with string) {
		if some := where(fits); len(some) > 0 {
			at = some[m.IntN(len(some))]
		}
		parts[at] = with
	}
	isName := func(p string) bool { return beginsName.MatchString(p) && !slices.Contains(keywords, p) }
	switch m.IntN(14) {
	case 0:
		parts[at] = ""
	case 1:
		parts[at] += " " + parts[at]
	case 2:
		other := all[m.IntN(len(all))]
		parts[at], parts[other] = parts[other], parts[at]
	case 3:
		parts[at] = m.one(keywords)
	case 4:
		parts[at] = m.one(operators)
	case 5, 6:
		put(beginsLiteral.MatchString, m.one(literals))
	case 7:
		put(func(p string) bool { return slices.Contains(types, p) }, m.one(types))
	case 8, 9:
		if names := where(isName); len(names) > 0 {
			put(isName, parts[names[m.IntN(len(names))]])
		}
	case 10:
		parts[at] += " " + m.one(operators) + " "
	case 11:
		if open := where(func(p string) bool { return p == "[" }); len(open) > 0 {
			first := open[m.IntN(len(open))]
			if last := slices.Index(parts[first:], "]"); last >= 0 {
				parts = slices.Replace(parts, first, first+last+1, m.one(multiples))
			}
		}
	default:
		return m.moveLine(text)
	}
	return strings.Join(parts, "")
}

// moveLine removes, duplicates or moves a line, or inserts a statement.
func (m mutator) moveLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	at, to := m.IntN(len(lines)), m.IntN(len(lines))
	line := lines[at]
	switch m.IntN(4) {
	case 0:
		lines = slices.Delete(lines, at, at+1)
	case 1:
		lines = slices.Insert(lines, to, line)
	case 2:
		lines = slices.Insert(slices.Delete(lines, at, at+1), min(to, len(lines)-1), line)
	default:
		lines = slices.Insert(lines, to, m.one(statements))
	}
	return strings.Join(lines, "")
}
