package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// recorded is what inmanta-core 20.1.0 answered to a call.
type recorded struct {
	Call          string         // method and path; COMPILE and PROCESS stand for ids
	Body          map[string]any // null for none
	InEnvironment bool
	Status        int
	// Shape is the answer with the kind of each value instead of the value; lists have their first item alone.
	Shape any
}

// tolerated is a difference from the recorded answer that is meant to be.
type tolerated struct {
	Call string // the call, or the beginning of several with * at the end
	Is   string // the difference as this test words it
	Why  string
}

func (a tolerated) covers(call string) bool {
	begin, open := strings.CutSuffix(a.Call, "*")
	return call == begin || open && strings.HasPrefix(call, begin)
}

const (
	referenceProject = "b0000000-0000-4000-8000-000000000001"
	referenceEnv     = "b0000000-0000-4000-8000-000000000002"
)

// readReference reads a file of testdata/reference.
func readReference[T any](t *testing.T, name string) (list []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "reference", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(name, err)
	}
	return list
}

// The answers to 144 calls, one after the other, have the status and the keys of those that inmanta-core 20.1.0 gave on
// a server with the same history: a project, an environment, and a version with two resources that was compiled,
// released and deployed. testdata/reference/answers.json has its answers, and differences.json what differs and why; a
// difference that is no longer there must go from the list.
func TestTheReferencesAnswers(t *testing.T) {
	c, compile, process := referenceHistory(t)
	ids := strings.NewReplacer("COMPILE", compile, "PROCESS", process)
	differences := readReference[tolerated](t, "differences.json")
	seen := make([]bool, len(differences))
	for _, want := range readReference[recorded](t, "answers.json") {
		body := ""
		if want.Body != nil {
			text, err := json.Marshal(want.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = string(text)
		}
		c.tid = ""
		if want.InEnvironment {
			c.tid = referenceEnv
		}
		method, path, _ := strings.Cut(want.Call, " ")
		name := strings.TrimSpace(want.Call + " " + body)
		for _, is := range want.compare(c.plain(method, ids.Replace(path), body)) {
			i := slices.IndexFunc(differences, func(a tolerated) bool { return a.Is == is && a.covers(name) })
			if i < 0 {
				t.Errorf("%s\n\t%s", name, is)
				continue
			}
			seen[i] = true
		}
	}
	for i, d := range differences {
		if !seen[i] {
			t.Errorf("the accepted difference %q of %s is not there any longer", d.Is, d.Call)
		}
		if d.Why == "" {
			t.Errorf("the accepted difference %q of %s has no reason", d.Is, d.Call)
		}
	}
}

// plain makes a request whose answer is not compared with our own document, since some are to paths that are not in it.
func (c *client) plain(method, path, body string) *httptest.ResponseRecorder {
	c.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if c.tid != "" {
		req.Header.Set(tidHeader, c.tid)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, req)
	return w
}

// compare says in which ways an answer differs from the recorded one. More keys than that are no difference.
func (r recorded) compare(w *httptest.ResponseRecorder) (out []string) {
	if w.Code != r.Status {
		return []string{fmt.Sprintf("status %d, not %d", w.Code, r.Status)}
	}
	if shape, _ := r.Shape.(map[string]any); len(shape) == 0 {
		return nil // no body, or one that is no JSON
	}
	var got any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		return []string{"the answer is no JSON"}
	}
	compareShapes(r.Shape, got, "", &out)
	return out
}

func compareShapes(want, got any, at string, out *[]string) {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			if got != nil {
				*out = append(*out, at+" is no object")
			}
			return
		}
		for name, part := range want {
			value, has := object[name]
			if !has {
				*out = append(*out, "no "+strings.TrimPrefix(at+"."+name, "."))
				continue
			}
			compareShapes(part, value, at+"."+name, out)
		}
	case []any:
		list, ok := got.([]any)
		if !ok && got != nil {
			*out = append(*out, at+" is no list")
		}
		if len(want) > 0 && len(list) > 0 {
			compareShapes(want[0], list[0], at+"[]", out)
		}
	case string:
		if kind := kindOf(got); kind != want && kind != "null" && want != "null" {
			*out = append(*out, fmt.Sprintf("%s is %s, not %s", strings.TrimPrefix(at, "."), kind, want))
		}
	}
	slices.Sort(*out)
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "bool"
	case float64:
		return "number"
	case []any:
		return "a list"
	}
	return "an object"
}

// referenceHistory returns a client of a server with the history of the recorded answers, and the ids of its compile
// and of its process with agents.
func referenceHistory(t *testing.T) (c *client, compile, process string) {
	t.Helper()
	s := servertest.New(t, servertest.Present)
	c = newClient(t, s)
	c.call("PUT", "/api/v2/project", `{"name": "p", "project_id": "`+referenceProject+`"}`, 200)
	c.call("PUT", "/api/v2/environment", `{"name": "e", "project_id": "`+referenceProject+`", "environment_id": "`+
		referenceEnv+`", "repository": "https://git.example.com/e.git", "branch": "master"}`, 200)
	c.tid = referenceEnv
	env := uuid.MustParse(referenceEnv)
	c.call("POST", "/api/v2/environment_settings/"+intent.AllowPushed, `{"value": true}`, 200)
	number := int(c.call("POST", "/api/v2/reserve_version", "", 200).at("data").(float64))
	resources := make([]fields, 0, 2)
	for _, name := range []string{"a", "b"} {
		id := "std::testing::NullResource[one,name=" + name + "]"
		requires := []string{}
		if name == "b" {
			requires = append(requires, "std::testing::NullResource[one,name=a]")
		}
		resources = append(resources, fields{
			"id": fmt.Sprintf("%s,v=%d", id, number), "requires": requires, "fail": false, "name": name, "value": "",
			"purged": false, "managed": true, "mutators": []any{}, "agentname": "one", "int_value": 0,
			"references": []any{}, "send_event": true, "report_only": false, "receive_events": true,
			"purge_on_delete": false,
		})
	}
	c.call("PUT", "/api/v1/version", exportBody(t, number, resources, fields{"version_info": fields{
		"export_metadata": fields{
			"type": "api", "message": "a test", "hostname": "here", "inmanta:compile:state": "success",
		},
	}}), 200)
	v, err := s.Store.Version(t.Context(), env, number)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.Store.VersionResources(t.Context(), env, number)
	if err != nil {
		t.Fatal(err)
	}
	var done []intent.FinishedAction
	for _, r := range stored {
		end := s.Now()
		hash := r.AttributeHash
		done = append(done, intent.FinishedAction{
			Action: intent.Action{
				ID: uuid.New(), Environment: env, Kind: intent.ActionDeploy, Resource: r.ID, Version: number,
				Started: end, Finished: &end, Status: intent.StatusDeployed, Change: intent.NoChange,
				Messages: []intent.LogLine{{
					Level: "INFO", Message: "Start run", Time: end,
					Arguments: json.RawMessage(`{"reason": "new version", "deploy_id": "1"}`),
				}},
			},
			State: intent.ResourceState{
				ID: r.ID, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
				LastRunAt: &end, LastSuccess: &end, LastDeployed: number, DeployedHash: hash, IntentHash: hash,
			},
		})
	}
	if err := s.Store.FinishActions(t.Context(), env, done); err != nil {
		t.Fatal(err)
	}
	s.Executors = intent.Executors{Here: true, Processes: []intent.ExecutorProcess{{
		PID: 4207, RSS: 38 << 20, Agents: 1, Started: s.Now(), IdleSince: s.Now(),
	}}}
	if _, err := s.Store.Beat(t.Context(), intent.Replica{
		ID: s.Store.Replica(), Name: "here", Roles: []string{"api", "process"}, Started: s.Now(),
	}, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	process = c.get("/api/v1/agentproc").text("processes", 0, "sid")
	return c, v.Provenance.Compile.String(), process
}
