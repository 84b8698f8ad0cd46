package graphql

import (
	"fmt"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"ordain.dev/ordain/server/store"
)

// What a query may ask for. A query for the whole schema, which editors send, has 13 levels and some 60 fields.
const (
	maxQuery  = 64 << 10 // bytes
	maxTokens = 4000
	maxDepth  = 20
	maxFields = 2000 // with every use of a fragment
	// maxRoots are the lists and summaries that one query may ask for: each is a statement for the database.
	maxRoots = 20
	// maxValues are the values that an answer may have, if all pages are full.
	maxValues = 100_000
)

// cost is what a part of a query takes. Numbers stop growing at a little more than is allowed.
type cost struct {
	depth, fields, values int
	top                   int // the fields of the outermost level
}

func (c *cost) add(other cost) {
	c.depth = max(c.depth, other.depth)
	c.fields = min(c.fields+other.fields, maxFields+1)
	c.values = min(c.values+other.values, maxValues+1)
	c.top = min(c.top+other.top, maxRoots+1)
}

// guard measures queries before anything else looks at them. A fragment is measured once, however often it is used,
// so that fragments which use each other twice cost no time here.
type guard struct {
	fragments ast.FragmentDefinitionList
	variables map[string]any
	measured  map[string]*cost
}

// check refuses a query that is larger than what this server answers.
func check(query string, variables map[string]any) *gqlerror.Error {
	if len(query) > maxQuery {
		return gqlerror.Errorf("the query is longer than %d bytes", maxQuery)
	}
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, maxTokens)
	if err != nil {
		return gqlerror.Wrap(err)
	}
	g := &guard{fragments: document.Fragments, variables: variables, measured: map[string]*cost{}}
	for _, o := range document.Operations {
		c := g.selection(o.SelectionSet)
		switch {
		case c.depth > maxDepth:
			return gqlerror.Errorf("the query is deeper than %d levels", maxDepth)
		case c.fields > maxFields:
			return gqlerror.Errorf("the query asks for more than %d fields", maxFields)
		case c.values > maxValues:
			return gqlerror.Errorf(
				"the query asks for more than %d values: ask for smaller pages, or in several queries", maxValues)
		case c.top > maxRoots:
			return gqlerror.Errorf("the query asks for more than %d lists: send several queries", maxRoots)
		}
	}
	return nil
}

// selection measures a selection. Fragments that contain themselves are left to the validation.
func (g *guard) selection(set ast.SelectionSet) (c cost) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			inner := g.selection(s.SelectionSet)
			c.add(cost{
				depth: inner.depth + 1, fields: inner.fields + 1, values: inner.values*g.times(s) + 1, top: 1,
			})
		case *ast.InlineFragment:
			c.add(g.selection(s.SelectionSet))
		case *ast.FragmentSpread:
			c.add(g.fragment(s.Name))
		}
	}
	return c
}

func (g *guard) fragment(name string) cost {
	if known, ok := g.measured[name]; ok {
		return *known
	}
	known := &cost{}
	g.measured[name] = known // for one that contains itself
	if f := g.fragments.ForName(name); f != nil {
		*known = g.selection(f.SelectionSet)
	}
	return *known
}

// times is how many items a field may have: the size of its page, if it is a connection.
func (g *guard) times(f *ast.Field) int {
	switch f.Name {
	case "environments", "notifications", "resources":
	default:
		return 1
	}
	size := pageSize
	for _, a := range f.Arguments {
		if a.Name != "first" && a.Name != "last" || a.Value == nil {
			continue
		}
		value, err := a.Value.Value(g.variables)
		if err != nil {
			continue
		}
		size = store.MaxPage // more is refused, and what is no number, too
		if n, err := strconv.Atoi(fmt.Sprint(value)); err == nil && n >= 0 && n < store.MaxPage {
			size = n
		}
	}
	return size
}
