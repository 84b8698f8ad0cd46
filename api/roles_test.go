package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/servertest"
)

// caller is the principal that the next request is sent by.
type caller struct{ access.Principal }

func (c *caller) Authenticate(*http.Request) (access.Principal, error) { return c.Principal, nil }

func person(name string, bindings ...access.Binding) access.Principal {
	return access.Principal{Kind: access.Person, Name: name, Bindings: bindings}
}

// Every route is called by every role, by a member of another project, and by a stranger. A stranger learns nothing but
// that a login is needed; who belongs to another project gets, byte for byte, the answer for an environment that does
// not exist; and a role decides by its labels alone.
func TestEveryRouteAsEveryRole(t *testing.T) {
	rich := servertest.NewRich(t)
	who := &caller{}
	rest, err := New(Config{
		Control: rich.Control, Store: rich.Store, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents,
		// There are no Clusters: they would look for a repository in the network.
		Catalogue: rich.Catalogue, Resources: rich.Resources,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Else versions that are pushed would be forbidden to everybody.
	if err := rich.Control.SetSetting(t.Context(), rich.Sandbox.ID, intent.AllowPushed, true); err != nil {
		t.Fatal(err)
	}
	here := access.Scope{Project: rich.Project.ID}
	unknown := uuid.New()
	send := func(p access.Principal, d *declaration, env, project uuid.UUID) *httptest.ResponseRecorder {
		who.Principal = p
		target := pathFor(d, env, project)
		if strings.Contains(d.path, "role_assignment") {
			target += "?environment=" + env.String()
		}
		r := httptest.NewRequest(d.method, target, bytes.NewBufferString(bodyFor(d, project)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(tidHeader, env.String())
		w := httptest.NewRecorder()
		rest.ServeHTTP(w, r)
		return w
	}
	checked := 0
	for _, d := range (&server{}).calls(newRouter()) {
		verb, _ := d.verb.Define()
		name := d.method + " " + d.path
		expect := func(who access.Principal, w *httptest.ResponseRecorder, allowed bool, refusal int) {
			t.Helper()
			checked++
			refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden && !protectedIn(w)
			if allowed && refused || !allowed && w.Code != refusal {
				t.Errorf("%s as %s: %d %.200s", name, who.Name, w.Code, w.Body)
			}
		}
		stranger := access.Principal{}
		expect(stranger, send(stranger, d, rich.Sandbox.ID, rich.Project.ID), verb.Label == access.Public, 401)
		open := verb.Label == access.Public || verb.Label == access.Open
		for _, role := range access.BuiltIn {
			member := person(role.Name+" here", access.Binding{Role: role, Scope: here})
			anywhere := open || role.Grants(verb) && verb.Reach != access.OnServer
			if destroys(d) && anywhere {
				continue // what the others need
			}
			expect(member, send(member, d, rich.Sandbox.ID, rich.Project.ID), anywhere, 403)

			foreigner := person(
				role.Name+" elsewhere",
				access.Binding{Role: role, Scope: access.Scope{Project: unknown}},
			)
			got := send(foreigner, d, rich.Sandbox.ID, rich.Project.ID)
			nowhere := send(foreigner, d, uuid.New(), uuid.New())
			checked++
			if got.Code != nowhere.Code || withoutIDs(got) != withoutIDs(nowhere) {
				t.Errorf("%s as %s: %d %.200s, but of what does not exist: %d %.200s", name, foreigner.Name,
					got.Code, got.Body, nowhere.Code, nowhere.Body)
			}
			if verb.Reach == access.OnEnvironment && got.Code < 300 && !strings.Contains(d.path, "/file") {
				t.Errorf("%s as %s: %d %.200s", name, foreigner.Name, got.Code, got.Body)
			}
		}
	}
	t.Logf("%d answers checked", checked)
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

func withoutIDs(w *httptest.ResponseRecorder) string {
	return uuids.ReplaceAllString(w.Body.String(), "ID")
}

// protectedIn reports whether a refusal is about the state of an environment, not about the sender.
func protectedIn(w *httptest.ResponseRecorder) bool {
	return strings.Contains(w.Body.String(), "protected")
}

// destroys reports whether a call takes away what other calls of the test need.
func destroys(d *declaration) bool {
	return d.method == http.MethodDelete &&
		slices.Contains(
			[]access.Verb{access.DeleteEnvironment, access.ClearEnvironment, access.DeleteProject},
			d.verb,
		)
}

var segment = regexp.MustCompile(`\{\w+\}`)

// pathFor fills the path of a call: the id is that of the environment or project that the call works on, and whatever
// else is named does not exist.
func pathFor(d *declaration, env, project uuid.UUID) string {
	verb, _ := d.verb.Define()
	return segment.ReplaceAllStringFunc(d.path, func(name string) string {
		switch name {
		case "{id}":
			switch {
			case strings.Contains(d.path, "file"):
				return strings.Repeat("0", 40)
			case verb.Reach == access.OnProject, strings.Contains(d.path, "/project/{id}"),
				strings.Contains(d.path, "/tenants/{id}"):
				return project.String()
			case strings.Contains(d.path, "environment_settings/"):
				return "autostart_agent_deploy_interval"
			}
			return env.String()
		case "{version}", "{from}", "{to}", "{number}", "{process}":
			return "4711"
		case "{rid}":
			return "std::File[a,path=x]"
		case "{action}":
			return "pause"
		case "{name}":
			return "webhook"
		}
		return uuid.NewString()
	})
}

func bodyFor(d *declaration, project uuid.UUID) string {
	if d.method == http.MethodGet || d.method == http.MethodHead {
		return ""
	}
	if d.verb == access.CreateEnvironment {
		return fmt.Sprintf(`{"project_id": %q, "name": %q}`, project, "e"+uuid.NewString())
	}
	if strings.Contains(d.path, "/file") { // these calls look at the sender themselves
		return map[string]string{"file": `{"files": ["x"]}`, "{id}": `{"content": ""}`,
			"filediff": `{"file_id_1": "1", "file_id_2": "2"}`}[path.Base(d.path)]
	}
	return `{}`
}

// A maintainer cannot take an environment away from the administrators of its project by moving it to another project,
// in which they may create environments.
func TestMovingTakesTheRightToDelete(t *testing.T) {
	rich := servertest.NewRich(t)
	other, err := rich.Control.CreateProject(t.Context(), intent.Project{Name: "of mallory"})
	if err != nil {
		t.Fatal(err)
	}
	as := func(here access.Role) context.Context {
		bindings := []access.Binding{
			{Role: here, Scope: access.Scope{Project: rich.Project.ID}},
			{Role: access.Administrator, Scope: access.Scope{Project: other.ID}},
		}
		return access.With(t.Context(), access.Principal{Kind: access.Person, Name: "mallory", Bindings: bindings})
	}
	e, err := rich.Store.Environment(t.Context(), rich.Sandbox.ID)
	if err != nil {
		t.Fatal(err)
	}
	e.ProjectID = other.ID
	if _, err := rich.Control.UpdateEnvironment(as(access.Maintainer), e); !fault.Is(err, fault.Forbidden) {
		t.Errorf("as a maintainer: %v", err)
	}
	if now, err := rich.Store.Environment(t.Context(), e.ID); err != nil || now.ProjectID != rich.Project.ID {
		t.Errorf("it is in the project %s, %v", now.ProjectID, err)
	}
	if _, err := rich.Control.UpdateEnvironment(as(access.Administrator), e); err != nil {
		t.Errorf("as an administrator: %v", err)
	}
}

// Who may set settings, as the tokens of agents and compilers may, cannot decide through them whom the server trusts.
func TestSettingsAboutTrustTakeMore(t *testing.T) {
	rich := servertest.NewRich(t)
	as := func(r access.Role) context.Context {
		bound := access.Binding{Role: r, Scope: access.Scope{Environment: rich.Sandbox.ID}}
		return access.With(t.Context(), access.Principal{
			Kind: access.Environment, Name: "a token", Bindings: []access.Binding{bound},
		})
	}
	agent := access.Role{Name: "agents", Verbs: []access.Verb{access.SeeEnvironment, access.SetSetting}}
	for _, c := range []struct {
		role          access.Role
		setting, text string
		refused       bool
	}{
		{agent, "git_verify", "off", true},
		{agent, "pull_previews", "all", true},
		{agent, "max_attempts", "7", false},
		{access.Maintainer, "git_verify", "off", false},
	} {
		err := rich.Control.SetSetting(as(c.role), rich.Sandbox.ID, c.setting, c.text)
		if refused := fault.Is(err, fault.Forbidden); refused != c.refused || !refused && err != nil {
			t.Errorf("%s as %s: %v", c.setting, c.role.Name, err)
		}
	}
	if err := rich.Control.DeleteSetting(as(agent), rich.Sandbox.ID, "git_verify"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("reset: %v", err)
	}
}
