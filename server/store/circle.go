package store

import (
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// refuseCircle fails when resources of a version require each other in a circle: none of them could ever be deployed.
// all is sorted by id.
func refuseCircle(all []incoming) error {
	at := make(map[string]int, len(all))
	for i := range all {
		at[all[i].id] = i
	}
	// Remove what requires nothing until nothing is left, or only circles and what depends on them are. left counts,
	// for each resource, the requirements that have not been removed.
	left, needed := make([]int, len(all)), make([][]int32, len(all))
	var free []int
	for i := range all {
		for _, id := range all[i].requires {
			if j, known := at[id]; known {
				left[i]++
				needed[j] = append(needed[j], int32(i))
			}
		}
		if left[i] == 0 {
			free = append(free, i)
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, j := range needed[i] {
			if left[j]--; left[j] == 0 {
				free = append(free, int(j))
			}
		}
	}
	if done == len(all) {
		return nil
	}
	return fault.New("store.StoreVersion", fault.Invalid,
		"resources require each other in a circle: "+strings.Join(circle(all, at, left), " requires ")).
		Hint("take one of these requirements out of the model")
}

// circle follows requirements among what is left until it meets a resource twice, and returns the circle.
func circle(all []incoming, at map[string]int, left []int) []string {
	i := 0
	for left[i] == 0 {
		i++
	}
	seen, path := map[int]int{}, []string(nil)
	for {
		if from, met := seen[i]; met {
			const shown = 10
			names := append(path[from:], all[i].id)
			if len(names) > shown {
				names = append(append(names[:shown-1:shown-1], "…"), all[i].id)
			}
			return names
		}
		seen[i] = len(path)
		path = append(path, all[i].id)
		for _, id := range all[i].requires {
			if j, known := at[id]; known && left[j] > 0 {
				i = j
				break
			}
		}
	}
}
