package contents_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/contents"
	"ordain.dev/ordain/server/store/storetest"
)

// A file changes: the difference shows its lines, by the hashes in the attributes, without the secrets of the
// environment. What is binary, too large, not stored, or not for this project says so.
func TestContentsBehindHashes(t *testing.T) {
	s, ctx := storetest.Open(t), t.Context()
	mine, other := intent.Project{ID: uuid.New(), Name: "mine"}, intent.Project{ID: uuid.New(), Name: "other"}
	put := func(content string, owner intent.ProjectID) string {
		name, err := s.PutFile(ctx, []byte(content), owner)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, p := range []intent.Project{mine, other} {
		if err := s.CreateProject(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	old := put("port 80\nkey hunter2secret\n", mine.ID)
	next := put("port 443\nkey hunter2secret\n", mine.ID)
	rotated := put("port 443\nkey hunter3secret\n", mine.ID)
	reader := contents.Reader{Store: s, Project: mine.ID, Mask: secret.NewRedactor("hunter2secret", "hunter3secret")}
	for name, one := range map[string]struct {
		attribute string
		was, now  any
		want      string
	}{
		"changed":  {"hash", old, next, "-port 80\n+port 443\n key *****\n"},
		"new":      {"hash", nil, next, "+port 443\n+key *****\n"},
		"gone":     {"hash", old, nil, "-port 80\n-key *****\n"},
		"secret":   {"hash", next, rotated, "(only masked secrets differ)\n"},
		"binary":   {"hash", old, put("\x00", mine.ID), "(binary content)\n"},
		"huge":     {"hash", old, put(strings.Repeat("x", 2<<20), mine.ID), "(too large to compare by line)\n"},
		"foreign":  {"hash", old, put("of others", other.ID), "(the server does not have the new content)\n"},
		"unknown":  {"hash", strings.Repeat("0", 40), next, "(the server does not have the old content)\n"},
		"inline":   {"content", "a\nb\n", "a\nc\n", " a\n-b\n+c\n"},
		"list":     {"x", []any{"a", "b", "c"}, []any{"a", "b"}, " [\n   \"a\",\n-  \"b\",\n-  \"c\"\n+  \"b\"\n ]\n"},
		"password": {"password", "a\nb\n", "a\nc\n", ""},
		"short":    {"mode", "644", "600", ""},
		"in dict": {
			"x", map[string]any{"a": 1.0, "b": 2.0, "token": "t1"}, map[string]any{"a": 3.0, "b": 2.0, "token": "t2"},
			" {\n-  \"a\": 1,\n+  \"a\": 3,\n   \"b\": 2,\n   \"token\": \"***\"\n }\n",
		},
	} {
		got, err := reader.Diffs(ctx, []map[string]intent.AttributeChange{
			{one.attribute: {Current: one.was, Desired: one.now}},
		})
		if err != nil {
			t.Fatal(name, err)
		}
		text := ""
		if d := got[0][one.attribute]; d != nil {
			text = d.String()
		}
		if text != one.want {
			t.Errorf("%s: %q, want %q", name, text, one.want)
		}
	}
	// What was found is known by its hash only: then all of the content wanted is shown, and what is not known said.
	reader.Found = true
	hash := strings.Repeat("0", 40)
	found, err := reader.Diffs(ctx, []map[string]intent.AttributeChange{
		{"hash": {Current: hash, Desired: next}}, {"hash": {Current: hash, Desired: hash[1:] + "1"}},
		{"hash": {Current: old, Desired: next}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := found[0]["hash"]; d == nil || len(d.Lines) != 2 || d.Lines[0].Text() != "port 443" ||
		d.Lines[1].Text() != "key *****" || d.Added+d.Removed+d.Hidden > 0 ||
		!strings.Contains(d.Note, "the handler reports only its hash; this is the content wanted") {
		t.Errorf("of content that nobody has: %+v", d)
	}
	if len(found[1]) > 0 || len(found[2]["hash"].Lines) != 3 {
		t.Errorf("of two unknown contents, and of two known ones: %v, %v", found[1], found[2])
	}
	reader.NoFiles = true
	got, err := reader.Diffs(ctx, []map[string]intent.AttributeChange{{"hash": {Current: old, Desired: next}}})
	if err != nil || len(got[0]) > 0 {
		t.Error("somebody who may not see files sees one", got, err)
	}
}
