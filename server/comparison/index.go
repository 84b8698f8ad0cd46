package comparison

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Index lists what differs. It is not changed once it is made, so several requests may use it.
type Index struct {
	Of     intent.Compared
	rows   []row // removals first, then by id
	groups []Group
}

type row struct {
	id       string
	typ      string // parts of id
	agent    string
	old, new int64
	kind     intent.DiffKind
	group    int // number of its group; 0: it is in none
}

// Group is a change that several resources of a type have in common.
type Group struct {
	Number int // from 1 on, the largest group first
	Type   string
	Edits  []Edit
	Count  int
	Agents int
}

// Edit is the change of an attribute. Of texts it has only the words that change, unless Whole is set.
type Edit struct {
	Attribute     string
	Before, After string
	Whole         bool
}

// Count says how many resources of a type and an agent differ, by kind.
type Count struct {
	Type, Agent string
	Kinds       map[intent.DiffKind]int
}

// Filter chooses differences; empty fields choose all.
type Filter struct {
	Type, Agent string
	Kind        intent.DiffKind
	Text        string // in the id, in any case
	Group       int
	// Folded leaves out the members of groups.
	Folded bool
}

// smallest is how many resources have a change in common at least before they are shown as one.
const smallest = 5

// maxGroups bounds how many groups an index has.
const maxGroups = 50

var order = map[intent.DiffKind]int{
	intent.DiffDeleted: 0, intent.DiffModified: 1, intent.DiffAdded: 2, intent.DiffUndefined: 3, intent.DiffSkipped: 4,
	intent.DiffUnknown: 5, intent.DiffAgentDown: 6, intent.DiffUnmodified: 7,
}

// builder collects an index.
type builder struct {
	index  *Index
	groups map[string]*collected
	shared map[string]string // types and agents, which many ids have in common
}

type collected struct {
	group   Group
	members []string
	agents  map[string]bool
}

func newBuilder(of intent.Compared) *builder {
	return &builder{index: &Index{Of: of}, groups: map[string]*collected{}, shared: map[string]string{}}
}

func (b *builder) share(text string) string {
	if known, ok := b.shared[text]; ok {
		return known
	}
	text = strings.Clone(text)
	b.shared[text] = text
	return text
}

// add takes a difference.
func (b *builder) add(e intent.DiffEdit) {
	typ, rest, _ := strings.Cut(e.ID, "[")
	agent, _, _ := strings.Cut(rest, ",")
	r := row{id: e.ID, typ: b.share(typ), agent: b.share(agent), old: e.Old, new: e.New, kind: e.Kind}
	b.index.rows = append(b.index.rows, r)
	if e.Kind != intent.DiffModified {
		return
	}
	edits := editsOf(e)
	if len(edits) == 0 {
		return
	}
	var key strings.Builder
	key.WriteString(r.typ)
	for _, edit := range edits {
		for _, part := range []string{edit.Attribute, edit.Before, edit.After} {
			key.WriteByte(0)
			key.WriteString(part)
		}
		if edit.Whole {
			key.WriteByte(1)
		}
	}
	c := b.groups[key.String()]
	if c == nil {
		c = &collected{group: Group{Type: r.typ, Edits: edits}, agents: map[string]bool{}}
		b.groups[key.String()] = c
	}
	c.members = append(c.members, e.ID)
	c.agents[r.agent] = true
}

// done returns the index.
func (b *builder) done() *Index {
	x := b.index
	var large []*collected
	for _, c := range b.groups {
		if len(c.members) >= smallest {
			slices.Sort(c.members)
			large = append(large, c)
		}
	}
	slices.SortFunc(large, func(a, b *collected) int {
		return cmp.Or(len(b.members)-len(a.members), strings.Compare(a.members[0], b.members[0]))
	})
	in := map[string]int{}
	for i, c := range large[:min(len(large), maxGroups)] {
		c.group.Number, c.group.Count, c.group.Agents = i+1, len(c.members), len(c.agents)
		x.groups = append(x.groups, c.group)
		for _, id := range c.members {
			in[id] = i + 1
		}
	}
	for i := range x.rows {
		x.rows[i].group = in[x.rows[i].id]
	}
	slices.SortFunc(x.rows, func(a, b row) int {
		return cmp.Or(order[a.kind]-order[b.kind], strings.Compare(a.id, b.id))
	})
	return x
}

// Kinds counts all differences by kind.
func (x *Index) Kinds() map[intent.DiffKind]int {
	out := map[intent.DiffKind]int{}
	for _, r := range x.rows {
		out[r.kind]++
	}
	return out
}

// Agents returns how many agents have a resource that would be created, changed or purged.
func (x *Index) Agents() int {
	agents := map[string]bool{}
	for _, r := range x.rows {
		if r.kind.Touches() {
			agents[r.agent] = true
		}
	}
	return len(agents)
}

// Types returns how many types have a resource that would be created, changed or purged.
func (x *Index) Types() int {
	types := map[string]bool{}
	for _, r := range x.rows {
		if r.kind.Touches() {
			types[r.typ] = true
		}
	}
	return len(types)
}

// Touched lists the resources that would be created, changed or purged.
func (x *Index) Touched() iter.Seq[intent.ResourceID] {
	return func(yield func(intent.ResourceID) bool) {
		for _, r := range x.rows {
			if !r.kind.Touches() {
				continue
			}
			if id, err := intent.ParseResourceID(r.id); err == nil && !yield(id) {
				return
			}
		}
	}
}

// Counts counts what differs by type and agent, those with the most differences first. What does not differ is left
// out.
func (x *Index) Counts() (out []Count) {
	at, total := map[[2]string]int{}, map[[2]string]int{}
	for _, r := range x.rows {
		if r.kind == intent.DiffUnmodified {
			continue
		}
		key := [2]string{r.typ, r.agent}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Count{Type: r.typ, Agent: r.agent, Kinds: map[intent.DiffKind]int{}})
		}
		out[i].Kinds[r.kind]++
		total[key]++
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(total[[2]string{b.Type, b.Agent}]-total[[2]string{a.Type, a.Agent}],
			strings.Compare(a.Type, b.Type), strings.Compare(a.Agent, b.Agent))
	})
	return out
}

// Groups returns the changes that several resources have in common, of the type, agent and kind of a filter.
func (x *Index) Groups(f Filter) (out []Group) {
	f.Group, f.Folded = 0, false
	counts, agents := map[int]int{}, map[int]map[string]bool{}
	for _, r := range x.rows {
		if r.group > 0 && f.match(r) {
			if counts[r.group]++; agents[r.group] == nil {
				agents[r.group] = map[string]bool{}
			}
			agents[r.group][r.agent] = true
		}
	}
	for _, g := range x.groups {
		if n := counts[g.Number]; n > 0 {
			g.Count, g.Agents = n, len(agents[g.Number])
			out = append(out, g)
		}
	}
	return out
}

func (f Filter) match(r row) bool {
	return r.kind != intent.DiffUnmodified && (f.Type == "" || r.typ == f.Type) &&
		(f.Agent == "" || r.agent == f.Agent) && (f.Kind == "" || r.kind == f.Kind) &&
		(f.Group == 0 || r.group == f.Group) && (!f.Folded || r.group == 0) &&
		(f.Text == "" || strings.Contains(strings.ToLower(r.id), strings.ToLower(f.Text)))
}

// Page returns the differences that a filter chooses, from the one with the number offset on, and how many these are
// in all.
func (x *Index) Page(f Filter, offset, limit int) (out []intent.DiffEdit, total int) {
	for _, r := range x.rows {
		if !f.match(r) {
			continue
		}
		if total++; total > offset && len(out) < limit {
			out = append(out, intent.DiffEdit{ID: r.id, Old: r.old, New: r.new, Kind: r.kind})
		}
	}
	return out, total
}
