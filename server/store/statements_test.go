package store

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// checkStatements prepares every statement, and a query of every list that
// uses all of its filters and sort columns, on the migrated schema: what is
// misspelt in SQL is found here and not on a Sunday.
func checkStatements(t *testing.T, url string) {
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	all := reflect.ValueOf(statements)
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		if _, err := conn.Prepare(t.Context(), name, all.Field(i).String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	values := map[string]string{
		"success": "true", "started": "false", "completed": "true", "requested": "ge:2026-11-14+13:50:31", "version": "lt:3",
		"date": "le:2026-11-14T13:50:31Z", "released": "true", "expires": "false", "timestamp": "gt:2026-11-14", "updated": "lt:2026-11-14",
		"minimal_log_level": "info",
		"parked":            "true", "managed": "true", "open": "false", "since": "ge:2026-11-14", "received": "ge:2026-11-14",
	}
	fields := reflect.ValueOf(lists)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		l := allLists()[name]
		q := intent.ListQuery{Filters: map[string][]string{}}
		for key := range l.filters {
			q.Filters[key] = []string{"x"}
			if v, ok := values[key]; ok {
				q.Filters[key] = []string{v}
			}
		}
		for sort := range l.columns {
			for _, desc := range []bool{false, true} {
				q.Sort, q.Desc = sort, desc
				fixed := make([]any, strings.Count(l.base, "$2")/max(strings.Count(l.base, "$2"), 1)+1)
				built, err := l.build(q, fixed...)
				if err != nil {
					t.Errorf("list %s: %v", name, err)
					continue
				}
				for _, sql := range []string{built.page, built.counts} {
					if _, err := conn.Prepare(t.Context(), "", sql); err != nil {
						t.Errorf("list %s by %s: %v\n%s", name, sort, err, sql)
					}
				}
			}
		}
	}
}

func allLists() map[string]list {
	return map[string]list{
		"compiles": lists.compiles, "versions": lists.versions, "versionResources": lists.versionResources, "resources": lists.resources,
		"history": lists.history, "logs": lists.logs, "parameters": lists.parameters, "facts": lists.facts, "agents": lists.agents,
		"drift": lists.drift, "deliveries": lists.deliveries, "discovered": lists.discovered,
	}
}

func TestStatementFilesAndNamesAgree(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"a name without a statement": {"-- name: One :one\nSELECT 1;\n", "no statement Two"},
		"a statement without a name": {"-- name: One :one\nSELECT 1;\n-- name: Two :one\nSELECT 2;\n-- name: Three :one\nSELECT 3;\n", "nothing uses the statement Three"},
		"a kind that is none":        {"-- name: One :some\nSELECT 1;\n", `"One :some" says none of`},
		"two of a name":              {"-- name: One :one\nSELECT 1;\n-- name: One :one\nSELECT 2;\n", "two statements One"},
	} {
		var into struct{ One, Two string }
		err := loadStatements(fstest.MapFS{"sql/x.sql": {Data: []byte(test.file)}}, &into)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
