package job_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/job"
	"ordain.dev/ordain/compiler/plugin"
)

// The compiler reads exactly the job that the server writes.
func TestJobRoundTrip(t *testing.T) {
	sent := job.Job{
		Project: "/state/env/compiler", Python: "/state/env/compiler/.env/bin/python", CacheDir: "/cache",
		Environment: "11111111-2222-3333-4444-555555555555", Partial: true, RemovedSets: []string{"a, b", "--c"},
		Known: plugin.Known{
			Environment: plugin.Environment{ID: "1", Name: "prod", Project: "2"},
			Facts:       map[string]map[string]string{"": {"key": "value"}, "std::File[a,path=/x]": {"hash": "1"}},
		},
		Clusters:  plugin.Clusters{"web": json.RawMessage(`{"size":3}`)},
		MemoryMax: 1 << 30, WarmKey: "k", ExportFile: "/scratch/export.json", RecipeFile: "/scratch/recipe.json",
	}
	var text bytes.Buffer
	if err := sent.Write(&text); err != nil {
		t.Fatal(err)
	}
	read, err := job.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, read); diff != "" {
		t.Error(diff)
	}
}

// An incomplete job is rejected before anything runs.
func TestIncompleteJobsAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "there is no compile job on standard input",
		"{":                   "cannot be read",
		`{"projct": "/a"}`:    `unknown field "projct"`,
		`{"project": "here"}`: "has to be an absolute path",
	} {
		if _, err := job.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}
