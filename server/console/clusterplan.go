package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/manifest"
)

// planView is what would be done, in bounded size: nodes that are alike share a row, and steps name no nodes.
type planView struct {
	Sentence string
	Nothing  bool
	Services []string // columns; empty: there are too many, and each row lists its own
	Layouts  []layoutRow
	Hidden   int // layouts that are not shown
	Deletes  []string
	Stages   []planStage
	Diff     *linediff.Diff
}

// layoutRow are nodes that are alike.
type layoutRow struct {
	Nodes    string
	Count    int
	New      bool
	Hardware string
	Image    string
	Has      []bool // by column
	Services string
}

// planStage are steps that do not wait for each other.
type planStage struct {
	Number int
	Tasks  int
	Steps  string
}

// Bounds of what a plan shows.
const (
	maxTickColumns = 12
	maxLayouts     = 60
	maxStages      = 80
)

// planOf shows a proposal.
func planOf(p *cluster.Proposal) (*planView, error) {
	v := &planView{Nothing: len(p.Plan.Tasks) == 0}
	var parts []string
	say := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(text, plural(n, "machine")))
		}
	}
	say(len(p.Plan.Makes), "%s made")
	say(len(p.Plan.Deletes), "%s deleted")
	if v.Nothing {
		v.Sentence = "No machine is touched."
	} else {
		parts = append(parts, plural(len(p.Plan.Tasks), "task")+" in "+plural(p.Plan.Stages, "stage"))
		v.Sentence = strings.Join(parts, ", ") + "."
	}
	if len(p.Plan.Deletes) > 0 {
		v.Deletes = p.Plan.Deletes
		if len(v.Deletes) > maxLayouts {
			more := len(v.Deletes) - maxLayouts
			v.Deletes = append(slices.Clone(v.Deletes[:maxLayouts]), "and "+count(more)+" more")
		}
	}
	if p.Manifest != nil {
		v.layouts(p)
	}
	v.stages(p)
	if p.Manifest == nil { // the whole file goes
		return v, nil
	}
	var err error
	v.Diff, err = manifestDiff(p.Prior, p.Manifest)
	return v, err
}

func (v *planView) layouts(p *cluster.Proposal) {
	made := map[string]bool{}
	for _, host := range p.Plan.Makes {
		made[host] = true
	}
	if len(p.Manifest.Services) <= maxTickColumns {
		v.Services = p.Manifest.Services
	}
	index := map[string]int{}
	var numbers [][]int
	for _, n := range p.Manifest.Nodes {
		isNew := made[n.Hostname]
		key := fmt.Sprint(isNew, n.HardwareType, "\x00", n.ImageType, "\x00", strings.Join(n.Services, "\x00"))
		i, known := index[key]
		if !known {
			i = len(v.Layouts)
			index[key] = i
			row := layoutRow{
				New:      isNew,
				Hardware: n.HardwareType,
				Image:    n.ImageType,
				Services: strings.Join(n.Services, ", "),
			}
			for _, s := range v.Services {
				row.Has = append(row.Has, slices.Contains(n.Services, s))
			}
			v.Layouts = append(v.Layouts, row)
			numbers = append(numbers, nil)
		}
		numbers[i] = append(numbers[i], n.Number)
	}
	for i := range v.Layouts {
		v.Layouts[i].Count, v.Layouts[i].Nodes = len(numbers[i]), spans(numbers[i])
	}
	if len(v.Layouts) > maxLayouts {
		v.Hidden = len(v.Layouts) - maxLayouts
		v.Layouts = v.Layouts[:maxLayouts]
	}
}

// spans writes sorted numbers in few words, as "1000–1003, 1007".
func spans(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		text := strconv.Itoa(numbers[i])
		if j > i {
			text += "–" + strconv.Itoa(numbers[j])
		}
		out = append(out, text)
		i = j + 1
	}
	return joinSome(out)
}

func (v *planView) stages(p *cluster.Proposal) {
	counts := make([]map[string]int, p.Plan.Stages)
	for _, t := range p.Plan.Tasks {
		if counts[t.Stage] == nil {
			counts[t.Stage] = map[string]int{}
		}
		counts[t.Stage][t.Group()]++
	}
	for i, groups := range counts {
		if i == maxStages {
			return
		}
		s := planStage{Number: i + 1}
		var steps []string
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			steps = append(steps, name+" on "+plural(groups[name], "node"))
			s.Tasks += groups[name]
		}
		s.Steps = joinSome(steps)
		v.Stages = append(v.Stages, s)
	}
}

// markOf tells apart what was planned, so that nothing else is committed than what a person saw. The end of a new lease
// is counted from now on, so it is left out.
func markOf(p *cluster.Proposal, withLease bool) string {
	var m *manifest.Manifest
	if p.Manifest != nil {
		m = p.Manifest.Clone()
		if !withLease {
			m.Expires = nil
		}
	}
	text, err := json.Marshal([]any{m, p.Plan.Makes, p.Plan.Deletes, len(p.Plan.Tasks)})
	if err != nil {
		return "" // matches nothing that was shown
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
