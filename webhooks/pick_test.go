package webhooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// reader has what is read whole: a type whose fields are those of others.
type reader struct {
	hubPush
	hubPull
}

// readAlike reads a payload as it is, and what was picked of it, into each type.
func readAlike(t *testing.T, body []byte) {
	t.Helper()
	for _, into := range []any{hubPush{}, hubPull{}, labPayload{}, cloudSide{}, serverSide{}, azureRepository{}, reader{}, struct{}{}, "", 0} {
		typ := reflect.TypeOf(into)
		picked, ok := pick(body, wantedBy(typ))
		if !ok {
			continue // it is read whole
		}
		if !json.Valid(body) {
			t.Fatalf("%q was taken for JSON", body)
		}
		want, got := reflect.New(typ), reflect.New(typ)
		wantErr, gotErr := json.Unmarshal(body, want.Interface()), json.Unmarshal(picked, got.Interface())
		if (wantErr == nil) != (gotErr == nil) || !reflect.DeepEqual(want.Interface(), got.Interface()) {
			t.Fatalf(
				"%v reads %q as\n%+v (%v)\nand what was picked, %q, as\n%+v (%v)",
				typ,
				body,
				want,
				wantErr,
				picked,
				got,
				gotErr,
			)
		}
	}
}

// Of what forges really send, little is read, and it is read as it was.
func TestPickReadsWhatForgesSend(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		readAlike(t, body)
		for cut := range 20 {
			readAlike(t, body[:len(body)*cut/20])
		}
	}
	body := payload(t, "github-push.json")
	picked, ok := pick(body, wantedBy(reflect.TypeFor[hubPush]()))
	if !ok || len(picked) > len(body)/3 {
		t.Errorf("of %d bytes %d were picked (%v)", len(body), len(picked), ok)
	}
}

var oddPayloads = []string{
	`{"REF":"a","ref":"b","re\u0066":"c"}`, `{"repository":{"full_name":"a"},"Repository":{"ssh_url":"b"}}`, `{"commits":[{"id":"a","x":[{}]},{},null,7]}`, `{"commits":{"id":"a"}}`,
	`{"ref":7,"x":-0.5e+10,"y":1E3}`, `[]`, `null`, ` "x" `, `{"pusher":{"na\u212Ae":"a","login":"\ud83d"}}`, "{\"ref\":\"\xff\"}", "{\"\u017Fha\":\"a\"}", `{"head_commit":null,"total_commits":3}`,
	``, `{`, `{"a":}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}", `{"a":1,}`, `[1,]`, `{"a" 1}`, `{a:1}`, `{} {}`, `{"a":"`, `{"a":"\`, `nul`, `{"ref":"x"}}`,
	`{"repository":` + strings.Repeat(
		`[`,
		300,
	) + strings.Repeat(
		`]`,
		300,
	) + `}`, `{"x":` + strings.Repeat(`{"repository":`, 300) + `1` + strings.Repeat(`}`, 300) + `}`, strings.Repeat(`{"repository":`, 300),
}

// What is odd is read as it was, or left to encoding/json and its words.
func TestPickOfWhatIsOdd(t *testing.T) {
	for _, body := range oddPayloads {
		readAlike(t, []byte(body))
	}
	for body, want := range map[string]string{
		`{"x":[1,2,{"ref":3}],"ref":"a","y":"\"}"}`:                                 `{"ref":"a"}`,
		`{"repository":{"id":1,"full_name":"a","owner":{}},"commits":[{"x":1},{}]}`: `{"repository":{"full_name":"a"},"commits":[{},{}]}`,
	} {
		if got, ok := pick([]byte(body), wantedBy(reflect.TypeFor[hubPush]())); !ok || string(got) != want {
			t.Errorf("%s: %s (%v)", body, got, ok)
		}
	}
}

func FuzzPick(f *testing.F) {
	for _, body := range oddPayloads {
		f.Add([]byte(body))
	}
	f.Add(payload(f, "github-push.json"))
	f.Add(payload(f, "gitlab-merge.json"))
	f.Fuzz(func(t *testing.T, body []byte) { readAlike(t, body) })
}

// BenchmarkDecode reads a push as GitHub sends it.
func BenchmarkDecode(b *testing.B) {
	body := payload(b, "github-push.json")
	b.SetBytes(int64(len(body)))
	b.Run("picked", func(b *testing.B) {
		for b.Loop() {
			var p hubPush
			if err := decode(body, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			var p hubPush
			if err := json.Unmarshal(body, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
