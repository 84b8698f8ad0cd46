package graphql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"ordain.dev/ordain/api/graphql"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/servertest"
	"ordain.dev/ordain/server/store"
)

// door returns a door to a server with a history, and a context in which everything may be seen.
func door(t testing.TB) (*graphql.Door, *servertest.Rich, context.Context) {
	t.Helper()
	r := servertest.NewRich(t)
	d := graphql.New(graphql.Config{
		Store: r.Store, Logger: r.Log,
		Allow:    func(context.Context, access.Verb, uuid.UUID) error { return nil },
		Settings: func(intent.Environment) any { return nil },
	})
	return d, r, access.With(t.Context(), access.Principal{
		Kind: access.Local, Bindings: []access.Binding{{Role: access.BuiltIn[0]}},
	})
}

type node struct {
	ResourceID, ResourceType, Agent, ResourceIDValue, AttributeHash string
	RequiresLength, ModelVersion                                    int
	Purged, IsUndefined                                             bool
	Attributes                                                      map[string]any
	State                                                           struct {
		LastHandlerRun, Blocked, LastNonDeployingStatus string
		Compliance                                      *string
		IsDeploying, IsOrphan                           bool
		OrphanedAfter                                   *int
		LastHandlerRunAt                                *string
	}
}

type connection struct {
	TotalCount int
	PageInfo   struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       *string
	}
	Edges []struct {
		Cursor string
		Node   node
	}
}

const resourcesQuery = `query($filter: ResourceFilter!, $first: Int, $after: String, $last: Int, $before: String,
	$orderBy: [StrawberryOrder!]) {
	resources(filter: $filter, first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy) {
		totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
		edges { cursor node { resourceId resourceType agent resourceIdValue attributeHash requiresLength modelVersion
			purged
			isUndefined attributes
			state { lastHandlerRun blocked lastNonDeployingStatus compliance isDeploying isOrphan orphanedAfter
				lastHandlerRunAt } } } } }`

// resources asks for a page; it returns the first error as a text.
func resources(t testing.TB, d *graphql.Door, ctx context.Context, variables map[string]any) (connection, string) {
	t.Helper()
	r := d.Do(ctx, resourcesQuery, variables, "")
	if len(r.Errors) > 0 {
		return connection{}, r.Errors[0]
	}
	var out struct{ Resources connection }
	if err := json.Unmarshal(r.Data, &out); err != nil {
		t.Fatal(err)
	}
	return out.Resources, ""
}

type object = map[string]any

func (n node) key(name string) string {
	switch name {
	case "agent":
		return n.Agent
	case "resource_type", "resourceType":
		return n.ResourceType
	case "resourceIdValue":
		return n.ResourceIDValue
	case "blocked":
		return n.State.Blocked
	case "lastHandlerRun":
		return n.State.LastHandlerRun
	case "isDeploying":
		return fmt.Sprint(n.State.IsDeploying)
	case "compliance":
		if n.State.Compliance != nil {
			return *n.State.Compliance
		}
		return "~" // orphans come last
	}
	return n.ResourceID
}

// Whatever the filter, the order and the size of the pages: the pages, joined in either direction, are the list; it has
// as many resources as it says, those that the filter lets through, in the order asked for.
func TestThePagesJoinedAreTheList(t *testing.T) {
	tool.Heavy(t, "joins every page of every order")
	d, r, ctx := door(t)
	env := r.Production.ID.String()
	whole, wrong := resources(t, d, ctx, object{"filter": object{"environment": env}, "first": 1000})
	if wrong != "" || whole.TotalCount != len(whole.Edges) || whole.TotalCount < 204 {
		t.Fatalf("%s; %d of %d resources", wrong, len(whole.Edges), whole.TotalCount)
	}
	filters := map[string]struct {
		filter object
		want   func(node) bool
	}{
		"all":       {object{}, func(node) bool { return true }},
		"no orphan": {object{"isOrphan": false}, func(n node) bool { return !n.State.IsOrphan }},
		"orphans":   {object{"isOrphan": true}, func(n node) bool { return n.State.IsOrphan }},
		"agent": {object{"agent": object{"contains": []string{"%WEB0_"}, "neq": []string{"web02"}}},
			func(n node) bool { return strings.HasPrefix(n.Agent, "web0") && n.Agent != "web02" }},
		"type": {object{"resourceType": object{"eq": []string{"fs::File", "no::Such"}}},
			func(n node) bool { return n.ResourceType == "fs::File" }},
		"value": {object{"resourceIdValue": object{"contains": []string{"%site-0%", "%html"}}},
			func(n node) bool {
				return strings.Contains(n.ResourceIDValue, "site-0") && strings.HasSuffix(n.ResourceIDValue, "html")
			}},
		"not value": {object{"resourceIdValue": object{"notContains": []string{"%site-0%"}}},
			func(n node) bool { return !strings.Contains(n.ResourceIDValue, "site-0") }},
		"nothing": {object{"agent": object{"eq": []string{}}}, func(node) bool { return false }},
		"failed": {object{"lastHandlerRun": object{"eq": []string{"FAILED", "SKIPPED"}}},
			func(n node) bool { return n.State.LastHandlerRun == "FAILED" || n.State.LastHandlerRun == "SKIPPED" }},
		"blocked": {object{"blocked": object{"neq": []string{"NOT_BLOCKED"}}},
			func(n node) bool { return n.State.Blocked != "NOT_BLOCKED" }},
		"not compliant": {object{"compliance": object{"neq": []string{"COMPLIANT"}}},
			func(n node) bool { return n.State.Compliance != nil && *n.State.Compliance != "COMPLIANT" }},
		"deploying": {object{"isDeploying": true}, func(n node) bool { return n.State.IsDeploying }},
		"kept":      {object{"purged": false}, func(n node) bool { return !n.Purged }},
		"null":      {object{"isOrphan": nil, "agent": nil}, func(node) bool { return true }},
	}
	names := []string{}
	for name, f := range filters {
		names = append(names, name)
		f.filter["environment"] = env
	}
	slices.Sort(names)
	keys := []string{"agent", "resource_type", "resourceIdValue", "blocked", "compliance", "lastHandlerRun",
		"isDeploying"}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "filter")
		size := rapid.IntRange(1, 120).Draw(rt, "size")
		by := rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 3, rapid.ID).Draw(rt, "keys")
		var orderBy []object
		var desc []bool
		for i, key := range by {
			desc = append(desc, rapid.Bool().Draw(rt, "desc"))
			orderBy = append(orderBy, object{"key": key, "order": map[bool]string{false: "asc", true: "desc"}[desc[i]]})
		}
		variables := object{"filter": filters[name].filter, "first": size}
		if len(by) > 0 {
			variables["orderBy"] = orderBy
		}
		want := map[string]bool{}
		for _, e := range whole.Edges {
			if filters[name].want(e.Node) {
				want[e.Node.ResourceID] = true
			}
		}
		var there []node
		var last connection
		for {
			page, wrong := resources(t, d, ctx, variables)
			if wrong != "" {
				rt.Fatal(wrong)
			}
			if page.TotalCount != len(want) || page.PageInfo.HasPreviousPage != (len(there) > 0) {
				rt.Fatalf("%d in all, want %d; %+v", page.TotalCount, len(want), page.PageInfo)
			}
			for _, e := range page.Edges {
				there = append(there, e.Node)
			}
			last = page
			if !page.PageInfo.HasNextPage {
				break
			}
			variables["after"] = *page.PageInfo.EndCursor
		}
		for _, n := range there {
			if !want[n.ResourceID] {
				rt.Fatalf("%s is not among %s", n.ResourceID, name)
			}
			delete(want, n.ResourceID)
		}
		if len(want) > 0 {
			rt.Fatalf("these are missing of %s: %v", name, want)
		}
		if !slices.IsSortedFunc(there, func(a, b node) int {
			for i, key := range by {
				if c := strings.Compare(a.key(key), b.key(key)); c != 0 {
					return map[bool]int{false: c, true: -c}[desc[i]]
				}
			}
			return 0
		}) {
			rt.Fatalf("not sorted by %v", orderBy)
		}
		// Back again, from the first item of the last page.
		back := make([]string, 0, len(there))
		for _, e := range last.Edges {
			back = append(back, e.Node.ResourceID)
		}
		delete(variables, "first")
		delete(variables, "after")
		variables["last"] = size
		for more := last.PageInfo.HasPreviousPage; more; {
			variables["before"] = *last.PageInfo.StartCursor
			if last, wrong = resources(t, d, ctx, variables); wrong != "" || !last.PageInfo.HasNextPage {
				rt.Fatal("backward: ", wrong, last.PageInfo)
			}
			var page []string
			for _, e := range last.Edges {
				page = append(page, e.Node.ResourceID)
			}
			back = append(page, back...)
			more = last.PageInfo.HasPreviousPage
		}
		for i, n := range there {
			if len(back) != len(there) || back[i] != n.ResourceID {
				rt.Fatalf("backward there are %d of %d, other than forward at %d", len(back), len(there), i)
			}
		}
	})
}

// What is shown of a resource is what the REST API has: every state, what it requires, and its attributes.
func TestAResourceIsShownWhole(t *testing.T) {
	d, r, ctx := door(t)
	env := r.Production.ID
	all, wrong := resources(t, d, ctx, object{"filter": object{"environment": env.String()}, "first": 1000})
	if wrong != "" {
		t.Fatal(wrong)
	}
	states, err := r.Store.States(ctx, env)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]intent.ResourceState{}
	for _, s := range states {
		known[s.ID.String()] = s
	}
	seen := map[string]bool{}
	for _, e := range all.Edges {
		n, s := e.Node, known[e.Node.ResourceID]
		detail, err := r.Store.Resource(ctx, env, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		seen[n.State.LastNonDeployingStatus] = true
		if !strings.EqualFold(n.State.LastHandlerRun, string(s.LastRun)) || n.State.IsOrphan != (s.Orphaned > 0) ||
			!strings.EqualFold(n.State.Blocked, string(s.Blocked)) || n.ModelVersion != detail.Resource.Version ||
			n.RequiresLength != len(detail.Resource.Requires) || n.AttributeHash != detail.Resource.AttributeHash ||
			n.Agent != s.ID.Agent || len(n.Attributes["requires"].([]any)) != n.RequiresLength ||
			n.IsUndefined != (len(detail.Resource.Undefined) > 0) {
			t.Errorf("%+v is shown of %+v", n, detail)
		}
		if status := s.Status(); !s.IsDeploying && s.Orphaned == 0 && n.State.LastNonDeployingStatus != string(status) {
			t.Errorf("%s is %s, not %s", n.ResourceID, n.State.LastNonDeployingStatus, status)
		}
	}
	for _, want := range []string{"available", "deployed", "failed", "skipped", "undefined", "skipped_for_undefined"} {
		if !seen[want] {
			t.Errorf("no resource is %s: the test does not cover it (%v)", want, seen)
		}
	}
	old, wrong := resources(t, d, ctx, object{"filter": object{"environment": env.String(), "modelVersion": 6},
		"first": 1000})
	if wrong != "" || len(old.Edges) == 0 || old.Edges[0].Node.ModelVersion != 6 || old.TotalCount != len(old.Edges) {
		t.Errorf("version 6 has %d resources: %s", len(old.Edges), wrong)
	}
	none, wrong := resources(t, d, ctx, object{"filter": object{"environment": env.String(), "modelVersion": 0}})
	if wrong != "" || none.TotalCount != 0 || none.PageInfo.EndCursor != nil {
		t.Errorf("version 0 has %d resources: %s", none.TotalCount, wrong)
	}
}

// Cursors of another order, or made up, are refused, and so is what would take too much.
func TestQueriesOutOfBounds(t *testing.T) {
	d, r, ctx := door(t)
	filter := object{"environment": r.Production.ID.String()}
	page, _ := resources(t, d, ctx, object{"filter": filter, "first": 1})
	for name, c := range map[string]struct {
		variables object
		want      string
	}{
		"another order": {
			object{"after": *page.PageInfo.EndCursor, "orderBy": []object{{"key": "agent"}}}, "another order",
		},
		"made up":       {object{"after": "YXJyYXljb25uZWN0aW9uOnt9"}, "not a cursor"},
		"both":          {object{"after": *page.PageInfo.EndCursor, "before": *page.PageInfo.EndCursor}, "not both"},
		"first, before": {object{"first": 1, "before": *page.PageInfo.EndCursor}, "first goes with after"},
		"negative":      {object{"first": -1}, "between 0 and"},
		"twice":         {object{"orderBy": []object{{"key": "agent"}, {"key": "agent"}}}, "twice"},
		"a column":      {object{"orderBy": []object{{"key": "id; DROP TABLE resource"}}}, "cannot sort by"},
		"a direction":   {object{"orderBy": []object{{"key": "agent", "order": "up"}}}, "asc or desc"},
	} {
		c.variables["filter"] = filter
		if _, wrong := resources(t, d, ctx, c.variables); !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q", name, wrong)
		}
	}
	bomb := "query { environments { ...f0 } }"
	for i := range 60 {
		bomb += fmt.Sprintf(" fragment f%d on EnvironmentConnection { ...f%d ...f%d }", i, i+1, i+1)
	}
	for query, want := range map[string]string{
		bomb + " fragment f60 on EnvironmentConnection { totalCount }": "more than 2000 fields",
		"{ __schema { types " + strings.Repeat("{ fields { type ", 12) + "{ name }" +
			strings.Repeat("} }", 12) + " } }": "deeper than",
		"{ " + strings.Repeat("a ", 5000) + "}":                                                        "token",
		"{" + strings.Repeat(" ", 70_000) + "}":                                                        "longer than",
		"{ environments { ...a } } fragment a on EnvironmentConnection { ...a }":                       "a",
		"{ a: environments(first: 1000) { edges { node { " + strings.Repeat("x: id ", 120) + "} } } }": "values",
	} {
		if got := d.Do(ctx, query, nil, ""); len(got.Errors) == 0 || !strings.Contains(got.Errors[0], want) ||
			got.Status() != 400 {
			t.Errorf("%.80s: %q, want %q", query, got.Errors, want)
		}
	}
	if _, err := r.Store.ResourceWindow(ctx, r.Production.ID, store.ResourceFilter{}, store.Window{Limit: 5000},
		false); err == nil {
		t.Error("the store reads any number of resources")
	}
}

// No query makes the server fail: each is answered, or refused in words.
func FuzzQuery(f *testing.F) {
	d, r, ctx := door(f)
	env := r.Production.ID.String()
	for _, seed := range []string{
		"{ environments { totalCount } }", resourcesQuery,
		`{ resources(filter: {environment: "` + env + `",
			agent: {contains: ["%\\"]}}, after: "eA==") { edges { cursor } } }`,
		"query a { ...b } fragment b on Query { ...b }", "{ __schema { types { name } } }", "\x00", "{a @skip(if: $x)}",
		`{ notifications(filter: {environment: "` + env + `"}, orderBy: {key: "created"}) { edges { node { uri } } } }`,
		"subscription { a }", "{ ... on Query @include(if: true) { environments { pageInfo { endCursor } } } }",
	} {
		f.Add(seed, "{}")
		f.Add(seed, `{"filter": {"environment": "`+env+`", "modelVersion": 7}, "first": 1e3, "x": null}`)
	}
	f.Fuzz(func(t *testing.T, query, variables string) {
		var given map[string]any
		_ = json.Unmarshal([]byte(variables), &given)
		got := d.Do(ctx, query, given, "")
		hidden := strings.Contains(strings.Join(got.Errors, ""), "server's log")
		if len(got.Errors) == 0 && got.Status() != 200 || hidden {
			t.Errorf("%q %q: %s %q", query, variables, got.Data, got.Errors)
		}
	})
}
