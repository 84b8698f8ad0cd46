package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// The most conditions that one filter may have; each costs time for every resource.
const (
	maxFilterValues   = 1000
	maxFilterPatterns = 20
	maxFilterText     = 2000
)

// ResourceFilter says which resources a window shows. A nil field is no condition.
type ResourceFilter struct {
	Type, Agent, Value           *TextFilter
	Blocked, Compliance, LastRun *ChoiceFilter
	Purged, Deploying, Orphan    *bool
	// Version lists the resources of one version, instead of those that are known; 0: no version.
	Version int
}

// TextFilter are conditions on a text; a nil slice is none. Patterns match like SQL's LIKE, ignoring case: % is any
// text, _ is any letter, and a backslash takes away the meaning of the next character.
type TextFilter struct {
	In, NotIn     []string
	Like, NotLike []string // all of them
}

// ChoiceFilter are conditions on one of few values; a nil slice is none.
type ChoiceFilter struct{ In, NotIn []string }

// FilteredResource is a resource as a version has it, with its state.
type FilteredResource struct {
	State         intent.ResourceState
	Version       int
	FirstSeen     time.Time
	Attributes    json.RawMessage // nil unless asked for
	AttributeHash string
	Requires      []intent.ResourceID
	ResourceSet   string
	Undefined     bool
	Purged        bool
}

func (w *windowSQL) text(column string, f *TextFilter) error {
	if f == nil {
		return nil
	}
	if len(f.Like)+len(f.NotLike) > maxFilterPatterns {
		return invalidList("a filter has more than %d patterns", maxFilterPatterns)
	}
	if err := w.choice(column, &ChoiceFilter{f.In, f.NotIn}); err != nil {
		return err
	}
	like := func(patterns []string, operator string) error {
		for _, p := range patterns {
			if err := checkFilterText(p); err != nil {
				return err
			}
			if trailing := len(p) - len(strings.TrimRight(p, `\`)); trailing%2 == 1 {
				return invalidList("the pattern %.100q ends with a backslash that stands for nothing", p)
			}
			w.where(column + operator + w.arg(p) + "::text")
		}
		return nil
	}
	return errors.Join(like(f.Like, " ILIKE "), like(f.NotLike, " NOT ILIKE "))
}

func (w *windowSQL) choice(column string, f *ChoiceFilter) error {
	if f == nil {
		return nil
	}
	if len(f.In)+len(f.NotIn) > maxFilterValues {
		return invalidList("a filter has more than %d values", maxFilterValues)
	}
	for _, values := range [][]string{f.In, f.NotIn} {
		for _, v := range values {
			if err := checkFilterText(v); err != nil {
				return err
			}
		}
	}
	if f.In != nil {
		w.where(column + " = ANY (" + w.arg(f.In) + "::text[])")
	}
	if f.NotIn != nil {
		w.where(column + " <> ALL (" + w.arg(f.NotIn) + "::text[])")
	}
	return nil
}

func checkFilterText(s string) error {
	switch {
	case len(s) > maxFilterText:
		return invalidList("a value of a filter is longer than %d bytes", maxFilterText)
	case strings.ContainsRune(s, 0):
		return invalidList("a value of a filter contains a zero byte")
	}
	return nil
}

func (w *windowSQL) truth(column string, want *bool) {
	if want != nil {
		w.where(column + " = " + w.arg(*want))
	}
}

// sql returns the conditions of a filter, and the statements that return all rows and those to count.
func (f ResourceFilter) sql(env intent.EnvironmentID) (w *windowSQL, rows, counted string, err error) {
	w, rows, counted = newWindowSQL(env), statements.WindowResources, statements.WindowResourcesCounted
	if f.Version != 0 {
		w, rows = newWindowSQL(env, f.Version), statements.WindowVersionResources
		counted = rows
	}
	err = errors.Join(
		w.text("type", f.Type), w.text("agent", f.Agent), w.text("value", f.Value),
		w.choice("blocked", f.Blocked), w.choice("compliance", f.Compliance), w.choice("last_run", f.LastRun),
	)
	w.truth("purged", f.Purged)
	w.truth("is_deploying", f.Deploying)
	w.truth("orphan", f.Orphan)
	return w, rows, counted, err
}

type windowResourceRow struct {
	Key, Content int64
	Version      *int
	Place        []string
}

type windowDetailRow struct {
	stateRow
	Rank          int
	Version       int
	FirstSeen     time.Time
	Attributes    json.RawMessage
	AttributeHash string
	Requires      []string
	ResourceSet   string
	Undefined     []string
	Purged        bool
}

func (r windowDetailRow) value() (FilteredResource, error) {
	state, err1 := r.stateRow.value()
	requires, err2 := parseIDs(r.Requires)
	return FilteredResource{
		State: state, Version: r.Version, FirstSeen: r.FirstSeen.UTC(), Attributes: r.Attributes,
		AttributeHash: r.AttributeHash, Requires: requires, ResourceSet: r.ResourceSet,
		Undefined: len(r.Undefined) > 0, Purged: r.Purged,
	}, errors.Join(err1, err2)
}

// ResourceWindow returns some of the resources that a filter lets through, orphans included. The keys of the order are
// agent, resource_type, resource_id_value, blocked, compliance, last_handler_run and is_deploying.
func (s *Store) ResourceWindow(
	ctx context.Context, env intent.EnvironmentID, f ResourceFilter, in Window, attributes bool,
) (out Span[FilteredResource], err error) {
	err = s.read(ctx, "store.ResourceWindow", func(q querier) error {
		w, rows, counted, err := f.sql(env)
		if err != nil {
			return err
		}
		var found []windowResourceRow
		more, done := false, false
		if f.Version == 0 && f.Type == nil && f.Agent == nil && f.Value == nil {
			found, more, done, err = readByValue(ctx, q, w, rows, counted, in)
		}
		if err == nil && !done {
			found, more, err = readWindow[windowResourceRow](ctx, q, resourceWindow, w, rows, in)
		}
		if err != nil || len(found) == 0 {
			out = Span[FilteredResource]{More: more}
			return err
		}
		keys, contents, versions := make([]int64, len(found)), make([]int64, len(found)), make([]int, len(found))
		for i, r := range found {
			keys[i], contents[i] = r.Key, r.Content
			if r.Version != nil {
				versions[i] = *r.Version
			}
		}
		details, err := many[windowDetailRow](ctx, q, statements.WindowResourceDetails, keys, contents, versions,
			attributes)
		out = Span[FilteredResource]{More: more}
		for _, d := range details { // fewer than found if some were deleted meanwhile
			item, valueErr := d.value()
			err = errors.Join(err, valueErr)
			if !attributes {
				item.Attributes = nil
			}
			out.Items = append(out.Items, item)
			out.Places = append(out.Places, found[d.Rank-1].Place)
		}
		return err
	})
	return out, err
}

// CountResources counts the resources that a filter lets through.
func (s *Store) CountResources(ctx context.Context, env intent.EnvironmentID, f ResourceFilter) (n int, err error) {
	err = s.read(ctx, "store.CountResources", func(q querier) error {
		w, _, counted, err := f.sql(env)
		if err != nil {
			return err
		}
		return q.QueryRow(ctx, w.count(counted), w.args...).Scan(&n)
	})
	return n, err
}

// StateSummary counts the resources that are no orphans, by each part of their state.
type StateSummary struct {
	Total      int
	LastRun    map[intent.HandlerResult]int
	Blocked    map[intent.Blocked]int
	Compliance map[intent.Compliance]int
	Deploying  map[bool]int
}

// StateSummary summarizes the states of an environment.
func (s *Store) StateSummary(ctx context.Context, env intent.EnvironmentID) (out StateSummary, err error) {
	type row struct {
		LastRun     intent.HandlerResult
		Blocked     intent.Blocked
		Compliance  intent.Compliance
		IsDeploying bool
		Count       int
	}
	err = s.read(ctx, "store.StateSummary", func(q querier) error {
		rows, err := many[row](ctx, q, statements.StateSummary, env)
		out = StateSummary{
			LastRun: map[intent.HandlerResult]int{}, Blocked: map[intent.Blocked]int{},
			Compliance: map[intent.Compliance]int{}, Deploying: map[bool]int{},
		}
		for _, r := range rows {
			out.Total += r.Count
			out.LastRun[r.LastRun] += r.Count
			out.Blocked[r.Blocked] += r.Count
			out.Compliance[r.Compliance] += r.Count
			out.Deploying[r.IsDeploying] += r.Count
		}
		return err
	})
	return out, err
}
