package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/servertest"
)

// graph sends a query and returns the result of GraphQL.
func (c *client) graph(query string, variables map[string]any, status int) answer {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.call("POST", "/api/v2/graphql", string(body), status).part("data")
}

// What the reference's console asks for, as it asks for it: first of all the environments, then notifications with
// literals, and resources together with their summary, with variables.
func TestTheConsolesQueries(t *testing.T) {
	c, r := rich(t)
	c.tid = "" // GraphQL takes no environment from the header
	env := r.Production.ID.String()
	got := c.graph(`query { environments { edges { node { name id halted isExpertMode isCompiling } } } }`, nil, 200)
	if n := len(got.list("data", "environments", "edges")); n != 3 {
		t.Errorf("there are %d environments", n)
	}
	got.is(nil, "errors")
	got.at("extensions")
	got.part("data", "environments", "edges", 0, "node").is("production", "name")
	got.part("data", "environments", "edges", 0, "node").is(true, "isCompiling")
	got = c.graph(`query { notifications(filter: {cleared: false, environment: "`+env+`"},
		orderBy: [{key: "created", order: "desc"}]) { edges { node { title severity read } } } }`, nil, 200)
	newest := r.Notices[len(r.Notices)-1]
	got.is(newest.Title, "data", "notifications", "edges", 0, "node", "title")
	got = c.graph(`query GetResources($filter: ResourceFilter!, $first: Int, $after: String, $last: Int,
		$before: String,
		$orderBy: [StrawberryOrder!], $environment: String!) {
		resources(filter: $filter, first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy) {
			totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
			edges { node { resourceId resourceType agent resourceIdValue requiresLength
				state { isDeploying lastHandlerRun compliance blocked lastHandlerRunAt isOrphan } } } }
		resourceSummary(environment: $environment) { lastHandlerRun blocked compliance isDeploying totalCount } }`,
		map[string]any{
			"environment": env, "first": 20, "orderBy": []any{map[string]any{"key": "resource_type", "order": "asc"}},
			"filter": map[string]any{
				"environment": env, "isOrphan": false,
				"resourceIdValue": map[string]any{"contains": []any{"%SITE-0%"}},
				"lastHandlerRun":  map[string]any{"eq": []any{"FAILED"}},
			},
		}, 200)
	got.is(r.FailedFile.String(), "data", "resources", "edges", 0, "node", "resourceId")
	got.is("FAILED", "data", "resources", "edges", 0, "node", "state", "lastHandlerRun")
	got.is(204, "data", "resourceSummary", "totalCount")
	got.is(4, "data", "resourceSummary", "isDeploying", "true")
}

// A query that fails says why in errors, below data, with the status 400.
func TestGraphQLErrors(t *testing.T) {
	c, r := rich(t)
	env, nowhere := r.Production.ID.String(), uuid.NewString()
	for _, one := range [][2]string{
		{``, "no operation"},
		{`{`, "Expected Name"},
		{`{ nothing }`, `Cannot query field "nothing"`},
		{`mutation { environments }`, "mutation"},
		{`{ resources { totalCount } }`, "filter"},
		{`{ resourceSummary(environment: "x") { totalCount } }`, "not the id of an environment"},
		{`{ resourceSummary(environment: "` + nowhere + `") { totalCount } }`, "does not exist"},
		{`{ environments(first: 5000) { totalCount } }`, "between 0 and 1000"},
		{`{ environments(last: 5) { totalCount } }`, "before"},
		{`{ environments(after: "x") { totalCount } }`, "not a cursor"},
		{`{ environments(orderBy: {key: "icon"}) { totalCount } }`, "only by id, name"},
		{`{ environments @defer { totalCount } }`, "defer"},
		{
			`{ resources(filter: {environment: "` + env + `", agent: {contains: "\\"}}) { totalCount } }`,
			"backslash",
		},
		{
			`{ resources(filter: {environment: "` + env + `", modelVersion: 7, isOrphan: true}) { totalCount } }`,
			"isOrphan",
		},
		{`{ ` + strings.Repeat("e: environments { totalCount } ", 21) + `}`, "20 lists"},
	} {
		query, want := one[0], one[1]
		got := c.graph(query, nil, 400)
		got.is(nil, "data")
		if text := got.text("errors", 0); !strings.Contains(text, want) {
			t.Errorf("%s: the error is %q, not %q", query, text, want)
		}
	}
	c.call("POST", "/api/v2/graphql", `{}`, 400).says("query")
}

// Each root asks for the verb of its REST call: who sees one environment gets that one, and of the others the answer
// for one that does not exist.
func TestGraphQLAsks(t *testing.T) {
	r := servertest.NewRich(t)
	who := &caller{}
	c := newClient(t, r.Server, func(cfg *Config) { cfg.Auth = who })
	who.Principal = person("reader", access.Binding{
		Role: access.BuiltIn[0], Scope: access.Scope{Environment: r.Staging.ID},
	})
	got := c.graph(`{ environments { totalCount edges { node { id settings } } } }`, nil, 200)
	got.is(1, "data", "environments", "totalCount")
	got.is(r.Staging.ID.String(), "data", "environments", "edges", 0, "node", "id")
	got.is(false, "data", "environments", "edges", 0, "node", "settings", "settings", "auto_deploy", "protected")
	for _, query := range []string{
		`{ resources(filter: {environment: "%"}) { totalCount } }`,
		`{ notifications(filter: {environment: "%"}) { totalCount } }`,
		`{ resourceSummary(environment: "%") { totalCount } }`,
	} {
		as := func(env uuid.UUID, status int) string {
			text, _ := json.Marshal(c.graph(strings.ReplaceAll(query, "%", env.String()), nil, status).body)
			return string(text)
		}
		as(r.Staging.ID, 200)
		hidden, missing := as(r.Production.ID, 400), as(uuid.New(), 400)
		if hidden != missing || !strings.Contains(hidden, "does not exist") {
			t.Errorf("%s: %s, of an environment that does not exist %s", query, hidden, missing)
		}
	}
	got = c.graph(`{ environments(filter: {id: "`+r.Production.ID.String()+`"}) { totalCount } }`, nil, 200)
	got.is(0, "data", "environments", "totalCount")
	who.Principal = access.Principal{}
	c.call("POST", "/api/v2/graphql", `{"query": "{ environments { totalCount } }"}`, 401)
	c.call("GET", "/api/v2/graphql/schema", "", 401)
}
