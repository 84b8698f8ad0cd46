// Package members lists the resources of a version in memory. What a version has never changes, nor do the names of its
// resources; only what became of them does. So the database is asked for the first once, and for the second each time:
//
//	names, in the orders of the database ──once──▶ Table ─┬─▶ Now ─┬─▶ a page of the list
//	what is deployed, and its states ────each time────────┘        └─▶ counts by type and standing
//
// Joining 50,000 resources with their contents and states takes the database several times as long as reading the
// states, which is all that it does here. Pages are exactly those that the statement of the list returns; for the few
// queries of which this package cannot know that, such as a place between two texts in the order of some language, it
// says so, and the statement is run. The package knows nothing of the database.
package members

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// Row is a resource of a version. Its columns of text come with their ranks among the texts of the column, from 1, in
// the order in which the database sorts them.
type Row struct {
	Resource, Content              int64
	ID                             string
	Type, Agent, Value             string
	TypeRank, AgentRank, ValueRank int
}

// Table is what a version says. Nothing changes it.
type Table struct {
	ids       []string // sorted by their bytes; the place of an id is the number of its resource below
	contents  []int64
	numbers   map[int64]int32 // by resource
	types     column
	agents    column
	values    column
	lowerable bool
}

// column is a column of text: the texts in their order, and that of each resource.
type column struct {
	texts []string
	of    []int32
	ascii bool
}

// NewTable returns the table of a version. lowerable says that the database makes letters of ASCII small as Go does,
// which it does in all but a few languages.
func NewTable(rows []Row, lowerable bool) *Table {
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.ID, b.ID) })
	t := &Table{
		ids: make([]string, len(rows)), contents: make([]int64, len(rows)),
		numbers: make(map[int64]int32, len(rows)), lowerable: lowerable,
	}
	for i, r := range rows {
		t.ids[i], t.contents[i], t.numbers[r.Resource] = r.ID, r.Content, int32(i)
	}
	t.types = columnOf(rows, func(r *Row) (*string, int) { return &r.Type, r.TypeRank })
	t.agents = columnOf(rows, func(r *Row) (*string, int) { return &r.Agent, r.AgentRank })
	t.values = columnOf(rows, func(r *Row) (*string, int) { return &r.Value, r.ValueRank })
	return t
}

func columnOf(rows []Row, get func(*Row) (*string, int)) column {
	c := column{of: make([]int32, len(rows)), ascii: true}
	for i := range rows {
		text, rank := get(&rows[i])
		for len(c.texts) < rank {
			c.texts = append(c.texts, "")
		}
		if c.texts[rank-1] == "" {
			c.texts[rank-1] = *text
			c.ascii = c.ascii && isASCII(*text)
		}
		c.of[i] = int32(rank - 1)
	}
	c.texts = slices.Clip(c.texts)
	return c
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Len is how many resources the version has.
func (t *Table) Len() int { return len(t.ids) }

// Bytes is about how much memory the table takes.
func (t *Table) Bytes() int {
	const each = int(unsafe.Sizeof("")) + 8 + 3*4 + 2*(8+4) // id, content, ranks, number
	n := each * len(t.ids)
	for _, id := range t.ids {
		n += len(id)
	}
	for _, texts := range [][]string{t.types.texts, t.agents.texts, t.values.texts} {
		for _, text := range texts {
			n += int(unsafe.Sizeof("")) + len(text)
		}
	}
	return n
}

// States are the resources with one status, and the content that each is deployed with.
type States struct {
	Status              string
	Resources, Contents []int64
}

// Now is a version with what has become of its resources.
type Now struct {
	table     *Table
	standings column
}

// Now adds what has become of the resources: the states of all that are deployed. other is the standing of a resource
// that is deployed with another content, absent that of one that is not deployed.
func (t *Table) Now(states []States, other, absent string) *Now {
	texts := []string{absent, other}
	for _, s := range states {
		texts = append(texts, s.Status)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	rank := func(text string) int32 { return int32(slices.Index(texts, text)) }
	n := &Now{t, column{texts: texts, of: slices.Repeat([]int32{rank(absent)}, len(t.ids))}}
	otherRank := rank(other)
	for _, s := range states {
		same := rank(s.Status)
		for i, resource := range s.Resources {
			number, ok := t.numbers[resource]
			switch {
			case !ok:
			case t.contents[number] == s.Contents[i]:
				n.standings.of[number] = same
			default:
				n.standings.of[number] = otherRank
			}
		}
	}
	return n
}

// Count is how many resources of a type have one standing.
type Count struct {
	Type, Standing string
	Count          int
}

// Counts counts the resources by type and standing, in the order of these.
func (n *Now) Counts() (out []Count) {
	all := len(n.standings.texts)
	counts := make([]int, len(n.table.types.texts)*all)
	for i, of := range n.table.types.of {
		counts[int(of)*all+int(n.standings.of[i])]++
	}
	for i, count := range counts {
		if count > 0 {
			out = append(out, Count{n.table.types.texts[i/all], n.standings.texts[i%all], count})
		}
	}
	return out
}

// Item is a resource with its standing.
type Item struct{ ID, Standing string }

func (n *Now) item(i int) Item { return Item{n.table.ids[i], n.standings.texts[n.standings.of[i]]} }

// place is where a row stands in a list: the rank of what the list is sorted by, and that of its id. Both are doubled,
// so that a place can lie between two rows.
type place struct{ by, id int }

func (a place) compare(b place) int { return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.id, b.id)) }

// among returns the doubled rank of a text among sorted ones.
func among(texts []string, text string) (doubled int, exact bool) {
	i, found := slices.BinarySearch(texts, text)
	if found {
		return 2 * i, true
	}
	return 2*i - 1, false
}
