package executor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/internal/intent"
)

// Whatever a process sends: what is read quickly is what the decoder reads.
func FuzzQuickLine(f *testing.F) {
	const at = `,"timestamp":"2026-11-22T07:42:03.778835+00:00"}`
	for _, line := range []string{
		`{"level":"DEBUG","msg":"Calling read_resource","kwargs":{}` + at,
		`{"level":"INFO","msg":"a","kwargs":{"a":[1,{"b":"c"}],"timestamp":"x"}` + at,
		`{"level":"INFO","msg":"a \"quote\" \u00e9","kwargs":{}` + at,
		`{"level":"INFO","msg":"é","kwargs":{}` + at,
		`{"level":"INFO","msg":"a","kwargs":{},"timestamp":"x","kwargs":{}` + at,
		`{"level":"INFO","msg":"a","kwargs":null` + at,
		`{"level":"INFO","msg":"a","kwargs":{},"timestamp":"today"}`,
		`{"level":"INFO","msg":"a","kwargs":{}` + at + `x`,
		`{"level":"INFO","msg":"a","kwargs":{},"timestamp":"2026-11-22T07:42:03Z"}`,
		`{"msg":"a","level":"INFO"}`, `{"level":"`, ``,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, quick := quickLine([]byte(text))
		if !quick {
			return
		}
		var want intent.LogLine
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%q is read quickly, though it is wrong: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

func FuzzQuickReply(f *testing.F) {
	for _, text := range []string{
		`{"status":"deployed","change":"nochange"}`, `{"status":"deployed","change":"nochange"} `, `{"status":"a\"b","change":"c"}`,
		`{"status":"deployed","change":"nochange","retire":"x"}`, `{"status":"é","change":""}`, `{"status":"`, `{}`, `null`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, quick := quickReply([]byte(text))
		if !quick {
			return
		}
		var want reply
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%q is read quickly, though it is wrong: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

// The forms that the worker gives its lines and its replies are read quickly.
func TestQuickForms(t *testing.T) {
	line, quick := quickLine(
		[]byte(
			`{"level":"DEBUG","msg":"Calling read_resource","kwargs":{"a":1},"timestamp":"2026-11-22T07:42:03.778835+00:00"}`,
		),
	)
	if r, quick := quickReply([]byte(`{"status":"deployed","change":"nochange"}`)); !quick ||
		r.Status != intent.StatusDeployed ||
		r.Change != intent.NoChange {
		t.Errorf("%v: %+v", quick, r)
	}
	if !quick || line.Message != "Calling read_resource" || line.Level != "DEBUG" ||
		string(line.Arguments) != `{"a":1}` ||
		line.Time.Nanosecond() != 778835000 {
		t.Errorf("%v: %+v", quick, line)
	}
}
