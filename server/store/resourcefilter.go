package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// A filter of resources becomes SQL here and nowhere else. Its conditions hold for a statement that has the columns of
// ResourceCounted; those on what a resource is hold for the resources of a version, too:
//
//	intent.ResourceFilter ──conditions──▶ the ids that match   (MatchResources: actions on all that match)
//	                                  ──▶ pages of a list and counts by property   (FilteredResources, in facets.go)

// facetConditions are the conditions of a filter, apart by the property that they are about, so that each property can
// be counted as if nothing were chosen of it.
type facetConditions struct {
	of   map[intent.FacetOf][]string
	rest []string
}

func (c facetConditions) all(but intent.FacetOf) (out []string) {
	for _, of := range slices.Sorted(maps.Keys(c.of)) {
		if of != but {
			out = append(out, c.of[of]...)
		}
	}
	return out
}

// resources returns the conditions of a filter. Values only ever become parameters.
func (b *sqlBuilder) resources(f intent.ResourceFilter) facetConditions {
	out := facetConditions{of: map[intent.FacetOf][]string{}}
	facet := func(of intent.FacetOf, conditions ...string) { out.of[of] = append(out.of[of], conditions...) }
	rest := func(conditions ...string) { out.rest = append(out.rest, conditions...) }

	facet(intent.FacetType, oneOf(b, "l.type", f.Type.In, f.Type.NotIn)...)
	facet(intent.FacetAgent, oneOf(b, "l.agent", f.Agent.In, f.Agent.NotIn)...)
	facet(intent.FacetStatus, oneOf(b, "l.status", f.Status.In, f.Status.NotIn)...)
	rest(oneOf(b, "l.value", f.Value.In, f.Value.NotIn)...)
	rest(b.like("l.type", f.Type)...)
	rest(b.like("l.agent", f.Agent)...)
	rest(b.like("l.value", f.Value)...)
	rest(oneOf(b, "CASE WHEN l.orphaned = 0 THEN l.compliance END", f.Compliance.In, f.Compliance.NotIn)...)
	rest(oneOf(b, "l.last_run", f.LastRun.In, f.LastRun.NotIn)...)
	rest(oneOf(b, "l.blocked", f.Blocked.In, f.Blocked.NotIn)...)
	if f.Resources != nil {
		ids := make([]string, len(f.Resources))
		for i, id := range f.Resources {
			ids[i] = id.String()
		}
		rest("l.id = ANY(" + b.arg(ids) + "::text[])")
	}
	is := func(column string, v *bool) (conditions []string) {
		if v != nil {
			conditions = append(conditions, column+" = "+b.arg(*v)+"::boolean")
		}
		return conditions
	}
	facet(intent.FacetParked, is("(l.parked <> '')", f.Parked)...)
	rest(is("l.purged", f.Purged)...)
	rest(is("l.is_deploying", f.Deploying)...)
	rest(is("(l.orphaned > 0)", f.Orphan)...)
	return out
}

func oneOf[T ~string](b *sqlBuilder, column string, in, notIn []T) (conditions []string) {
	texts := func(list []T) []string {
		out := make([]string, len(list))
		for i, v := range list {
			out[i] = cleanText(string(v))
		}
		return out
	}
	if in != nil {
		conditions = append(conditions, column+" = ANY("+b.arg(texts(in))+"::text[])")
	}
	if len(notIn) > 0 {
		conditions = append(conditions, column+" <> ALL("+b.arg(texts(notIn))+"::text[])")
	}
	return conditions
}

func (b *sqlBuilder) like(column string, f intent.TextFilter) (conditions []string) {
	for _, pattern := range f.Like {
		conditions = append(conditions, column+" ILIKE "+b.arg(pattern)+"::text")
	}
	for _, pattern := range f.NotLike {
		conditions = append(conditions, column+" NOT ILIKE "+b.arg(pattern)+"::text")
	}
	return conditions
}

// LikeContains returns the pattern of a TextFilter for texts that contain a text.
func LikeContains(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}

// checkFilter rejects a filter that contradicts itself, or that the database cannot take.
func checkFilter(f intent.ResourceFilter) error {
	if names := f.Conflicts(); len(names) > 0 {
		return fault.New("store.filter", fault.Invalid,
			"modelVersion cannot be combined with filters on the current resource state: "+strings.Join(names, ", "))
	}
	for _, text := range []intent.TextFilter{f.Type, f.Agent, f.Value} {
		for _, list := range [][]string{text.Like, text.NotLike} {
			for _, pattern := range list {
				switch {
				case strings.ContainsRune(pattern, 0):
					return fault.New("store.filter", fault.Invalid, "a pattern contains a zero byte")
				case strings.HasSuffix(strings.ReplaceAll(pattern, `\\`, ""), `\`):
					return fault.New("store.filter", fault.Invalid,
						fmt.Sprintf("the pattern %q ends in a backslash", pattern)).
						Hint(`write \\ for a backslash`)
				}
			}
		}
	}
	return nil
}

type matchedRow struct {
	ID      string
	Version int
}

// MatchResources returns the resources that a filter matches.
func (s *Store) MatchResources(
	ctx context.Context,
	env intent.EnvironmentID,
	f intent.ResourceFilter,
) (out intent.MatchedResources, err error) {
	if err := checkFilter(f); err != nil {
		return out, err
	}
	b := &sqlBuilder{list: ResourceList, args: []any{env}}
	statement, version := statements.ResourceCounted, "l.version"
	if f.Version != 0 {
		statement, version = statements.VersionResourceRows, b.arg(f.Version)+"::int"
	}
	conditions := b.resources(f)
	sql := "SELECT l.id, " + version + " AS version" + from(statement, append(conditions.all(""), conditions.rest...)) +
		` ORDER BY l.id`
	err = s.read(ctx, "store.MatchResources", func(q querier) error {
		rows, err := many[matchedRow](ctx, q, sql, b.args...)
		if err != nil {
			return err
		}
		if f.Version != 0 && len(rows) == 0 {
			if err := requireVersion(ctx, q, env, f.Version); err != nil {
				return err
			}
		}
		if len(rows) == 0 {
			return s.exists(ctx, q, env)
		}
		versions := map[int]bool{}
		for _, r := range rows {
			id, err := intent.ParseResourceID(r.ID)
			if err != nil {
				return err
			}
			out.IDs = append(out.IDs, id)
			if !versions[r.Version] {
				versions[r.Version] = true
				out.Versions = append(out.Versions, r.Version)
			}
		}
		slices.Sort(out.Versions)
		if len(out.Versions) != 1 {
			return nil
		}
		var total int
		err = q.QueryRow(ctx, statements.VersionTotal, env, out.Versions[0]).Scan(&total)
		if errors.Is(err, pgx.ErrNoRows) { // deleted since; an orphan remembers it
			return nil
		}
		out.All = total == len(out.IDs)
		return err
	})
	return out, err
}

func cleanTexts(in []string) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = cleanText(v)
	}
	return out
}

type complianceRow struct {
	stateRow
	ReportOnly bool
	Differs    json.RawMessage
}

func (r complianceRow) value() (intent.ComplianceReport, error) {
	state, err1 := r.stateRow.value()
	differs, err2 := fromJSON[map[string]intent.AttributeChange](r.Differs)
	return intent.ComplianceReport{ID: state.ID, ReportOnly: r.ReportOnly, State: state, Differs: differs},
		errors.Join(err1, err2)
}

// ComplianceReports says of resources of the active version how they compare to their intent. It leaves out those that
// the active version does not have.
func (s *Store) ComplianceReports(
	ctx context.Context,
	env intent.EnvironmentID,
	ids []string,
) (out []intent.ComplianceReport, err error) {
	err = s.read(ctx, "store.ComplianceReports", func(q querier) error {
		if err := s.exists(ctx, q, env); err != nil {
			return err
		}
		out, err = collect(ctx, q, complianceRow.value, statements.ComplianceReports, env, cleanTexts(ids))
		return err
	})
	return out, err
}
