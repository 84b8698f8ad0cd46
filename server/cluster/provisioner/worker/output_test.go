package worker

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/task"
)

// A script prints a gigabyte while nobody reads: the last of it is kept, and memory does not grow.
func TestGigabyteOfOutput(t *testing.T) {
	tool.Heavy(t, "writes a gigabyte")
	size := 1 << 30
	if racedetector.On || testing.Short() {
		size = 1 << 25
	}
	o := newOutput(secret.NewRedactor("hidden-value"))
	piece := []byte(strings.Repeat("0123456789abcde\n", 1<<16)) // 1 MiB at once
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for written := 0; written < size; written += len(piece) {
		if n, err := o.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	_, _ = o.Write([]byte("hidden-"))
	_, _ = o.Write([]byte("value and the end"))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the output keeps %d KiB", grown>>10)
	}
	next := o.next(false)
	if !strings.Contains(next, "bytes of output are left out here") || len(next) > task.MaxOutput+200 {
		t.Errorf("%d bytes are to be sent, beginning with %.100q", len(next), next)
	}
	last := o.last()
	if len(last) != task.MaxOutput || !strings.HasSuffix(last, "\n***** and the end") {
		t.Errorf("%d bytes are kept, ending with %q", len(last), last[len(last)-50:])
	}
}

// Pieces that are sent never cut a character, and all of them together are what was printed.
func TestCharactersStayWhole(t *testing.T) {
	o := newOutput(secret.NewRedactor("x"))
	text := strings.Repeat("é€𝄞–a", 50)
	var got strings.Builder
	for i := range len(text) {
		_, _ = o.Write([]byte{text[i]})
		if i%3 == 0 {
			next := o.next(false)
			if !utf8.ValidString(next) || strings.Contains(next, "\uFFFD") {
				t.Fatalf("%q", next)
			}
			got.WriteString(next)
		}
	}
	got.WriteString(o.next(true))
	if got.String() != text {
		t.Errorf("%q", got.String())
	}
	_, _ = o.Write([]byte("\xff\x00\xc3"))
	if next := o.next(true); next != "\uFFFD\uFFFD" {
		t.Errorf("%q", next)
	}
}

// Values are secret because they are declared, because their names say so, at any depth, or because they look like
// private keys. Others are not, nor are short ones.
func TestSecrets(t *testing.T) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	got := secretsOf(task.Task{
		Secrets: []string{"abc"},
		Provider: task.Provider{Fields: task.Fields{"region": raw(`"eu-west-1"`), "API_Key": raw(`"key-of-the-api"`),
			"secret_access_key": raw(`"access-key-value"`), "pin_token": raw(`12345678`), "password": raw(`"short"`)}},
		Service: &task.Service{Fields: task.Fields{"args": raw(`{"db":{"passwd":["nested-one","nested-two"]}}`)}},
		Node:    task.Node{Facts: task.Fields{"note": raw(`"-----BEGIN OPENSSH PRIVATE KEY-----\nabc"`)}},
		Config:  raw(`{"credentials":{"user":"admin-user"},"size":"medium-size","broken":`),
	})
	slices.Sort(got)
	want := []string{
		"-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
		"12345678",
		"abc",
		"access-key-value",
		"key-of-the-api",
		"nested-one",
		"nested-two",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
