package generate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Crosses joins two cases of an area, which mostly begin alike, by adding the
// definitions and statements of one to the other. Each case was written for one trap;
// a cross combines two of them. The same seed and corpus always make the same cross.
func Crosses(corpus []parity.Case) func(seed uint64) parity.Case {
	areas := map[string][]parity.Case{}
	for _, c := range corpus {
		if mutable(c) && !c.Export {
			areas[c.Area] = append(areas[c.Area], c)
		}
	}
	pairs := slices.DeleteFunc(slices.Clone(corpus), func(c parity.Case) bool {
		return !mutable(c) || c.Export || len(areas[c.Area]) < 2
	})
	return func(seed uint64) parity.Case {
		r := rand.New(rand.NewPCG(seed, 89))
		first := pairs[r.IntN(len(pairs))]
		among := areas[first.Area]
		second := among[r.IntN(len(among))]
		for range 50 { // find a case with the same modules
			if second.Name != first.Name && sameBeside(first, second) {
				break
			}
			second = among[r.IntN(len(among))]
		}
		c := first
		c.Name = fmt.Sprintf("%s-%s-%s-%d", strings.ReplaceAll(first.Area, "/", "-"), first.Name, second.Name, seed)
		c.Area = "crossed"
		c.Files = maps.Clone(first.Files)
		c.Files["main.cf"] = cross(r, first.Files["main.cf"], second.Files["main.cf"])
		return c
	}
}

// sameBeside reports whether two projects differ only in their main file.
func sameBeside(a, b parity.Case) bool {
	rest := func(c parity.Case) map[string]string {
		files := maps.Clone(c.Files)
		delete(files, "main.cf")
		return files
	}
	return maps.Equal(rest(a), rest(b))
}

var defines = regexp.MustCompile(
	`^(?:(?:entity|typedef|implementation|import)\s+\S+|[A-Za-z_]\w*\s*=|\S+\.\S+ \[[^\]]*\] --)`,
)

// cross inserts statements of another model at random places of a model. It skips
// statements that the model has already, or that define a name which it defines.
func cross(r *rand.Rand, model, other string) string {
	parts := Statements(model)
	have := map[string]bool{}
	for _, p := range parts {
		have[p] = true
		have[defines.FindString(p)] = true
	}
	delete(have, "")
	at := len(parts)
	if r.IntN(3) == 0 {
		at = r.IntN(len(parts) + 1)
	}
	for _, p := range Statements(other) {
		if have[p] || have[defines.FindString(p)] || strings.TrimSpace(p) == "" {
			continue
		}
		parts = append(parts[:at], append([]string{p}, parts[at:]...)...)
		at++
	}
	return strings.Join(parts, "\n") + "\n"
}

// Statements splits a model into its top-level statements. A statement ends before a
// line that is not indented and does not continue a block.
func Statements(model string) []string {
	var parts []string
	for line := range strings.Lines(model) {
		line = strings.TrimRight(line, "\n")
		first, _, _ := strings.Cut(line, " ")
		goesOn := strings.HasPrefix(line, " ") || line == "end" || first == "elif" || first == "else:"
		if goesOn && len(parts) > 0 {
			parts[len(parts)-1] += "\n" + line
			continue
		}
		parts = append(parts, line)
	}
	return parts
}
