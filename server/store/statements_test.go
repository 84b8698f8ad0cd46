package store

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// checkStatements prepares every statement on the migrated schema, and for every list queries with all of its filters
// and sort fields, so that an error in the SQL is found here.
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
	for _, l := range allLists {
		q := intent.ListQuery{Filters: map[string][]string{}}
		for _, f := range l.Fields {
			if f.Filter != NoFilter {
				q.Filters[f.Name] = []string{exampleValue(f)}
			}
		}
		for _, sort := range l.SortFields() {
			for _, desc := range []bool{false, true} {
				q.Sort, q.Desc = sort, desc
				normal, err := l.Normalize(q)
				if err != nil {
					t.Errorf("%v: %v", l.Fields, err)
					continue
				}
				fixed := make([]any, strings.Count(*l.rows, "$2")/max(strings.Count(*l.rows, "$2"), 1)+1)
				built, err := l.buildWhere(normal, nil, fixed...)
				if err != nil {
					t.Errorf("%v: %v", l.Fields, err)
					continue
				}
				for _, sql := range []string{built.page, built.counts} {
					if _, err := conn.Prepare(t.Context(), "", sql); err != nil {
						t.Errorf("sorted by %s: %v\n%s", sort, err, sql)
					}
				}
			}
		}
	}
}

func exampleValue(f Field) string {
	value := map[Kind]string{Text: "x", Number: "3", Time: "2026-11-14+13:50:31", Boolean: "true",
		Level: "info"}[f.Kind]
	switch f.Filter {
	case IsSet:
		return "false"
	case InRange:
		return "ge:" + value
	}
	return value
}

var allLists = []*List{
	CompileList, VersionList, VersionResourceList, ResourceList, ResourceHistoryList, ResourceLogList, ParameterList,
	FactList, AgentList, NotificationList, AuditList, DiscoveredList, DeliveryList, DriftList,
	ProcessList, VersionMemberList, OrphanList,
}

// Every list has its default sort among its fields, and no two fields of a name; every statement of kind list belongs
// to a list.
func TestListsAreDeclaredWhole(t *testing.T) {
	used := 0
	for _, l := range allLists {
		if f, ok := l.Field(l.Sort); !ok || !f.Sortable {
			t.Errorf("%v: its default sort is %q", l.Fields, l.Sort)
		}
		seen := map[string]bool{}
		for _, f := range l.Fields {
			if seen[f.Name] || f.column == "" || f.Name != strings.ToLower(f.Name) {
				t.Errorf("field %+v", f)
			}
			seen[f.Name] = true
		}
		if used++; l.counted != nil {
			used++
		}
	}
	declared := 0
	files, err := fs.Glob(statementFiles, "sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(statementFiles, name)
		if err != nil {
			t.Fatal(err)
		}
		declared += strings.Count(string(text), " :list\n")
	}
	if used != declared {
		t.Errorf("the lists use %d statements of kind list; there are %d", used, declared)
	}
}

func TestStatementFilesAndNamesAgree(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"a name without a statement": {"-- name: One :one\nSELECT 1;\n", "no statement Two"},
		"a statement without a name": {"-- name: One :one\nSELECT 1;\n-- name: Two :one\nSELECT 2;\n-- name: Three " +
			":one\nSELECT 3;\n", "nothing uses the statement Three"},
		"a kind that is none": {"-- name: One :some\nSELECT 1;\n", `"One :some" is none of`},
		"two of a name": {"-- name: One :one\nSELECT 1;\n-- name: One :one\nSELECT 2;\n",
			"two statements One"},
	} {
		var into struct{ One, Two string }
		err := loadStatements(fstest.MapFS{"sql/x.sql": {Data: []byte(test.file)}}, &into)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
