package eval

import (
	"fmt"
	"sort"

	"ordain.dev/ordain/compiler/types"
)

// suggest gives the hint "did you mean" when one of the names is near.
func suggest(what, wrong string, names []string) string {
	best, distance := "", len(wrong)/2+1
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	for _, name := range sorted {
		if d := editDistance(wrong, name, distance); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean the %s %s?", what, best)
}

// editDistance is the number of letters to change; limit or more is all the same.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func attributeNames(e *types.Entity) []string {
	names := make([]string, len(e.Attributes))
	for i, a := range e.Attributes {
		names[i] = a.Name
	}
	return names
}
