package diag

import "slices"

// Nearest finds the name that was probably meant; empty when none is similar.
func Nearest(wrong string, names []string) string {
	best, distance := "", len(wrong)/2+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := editDistance(wrong, name, distance); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// editDistance is the number of letters to add, remove, change or swap with their neighbour, but at
// most limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
