package console

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/servertest"
)

// caller is the principal that the next request is sent by.
type caller struct{ access.Principal }

func (c *caller) Authenticate(*http.Request) (access.Principal, error) { return c.Principal, nil }

// Every page and form is asked for by every role, by a member of another project, and by a stranger, as a page and as a
// live stream. Who belongs to another project gets, byte for byte, the answer for an environment that does not exist,
// and no page names an environment that its reader may not see.
func TestEveryPageAsEveryRole(t *testing.T) {
	tool.Heavy(t, "asks for every page with every role")
	t.Parallel()
	rich := servertest.NewRich(t)
	who := &caller{}
	pages, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents,
		Clusters: rich.Clusters, Catalogue: rich.Catalogue, Resources: rich.Resources,
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(p access.Principal, pattern string, env uuid.UUID, query string) *httptest.ResponseRecorder {
		who.Principal = p
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.ReplaceAll(strings.TrimSuffix(path, "{$}"), "{env}", env.String())
		project := env // for an environment that does not exist, a project that does not
		if env == rich.Sandbox.ID {
			project = rich.Project.ID
		}
		path = strings.ReplaceAll(path, "{project}", project.String())
		path = parameter.ReplaceAllStringFunc(path, func(name string) string {
			if name == "{version}" || name == "{number}" {
				return "4711"
			}
			return uuid.NewString()
		})
		r := httptest.NewRequest(method, path+query, nil)
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		return w
	}
	checked := 0
	for pattern, v := range (&console{}).routes(http.NewServeMux()) {
		verb, _ := v.Define()
		if w := send(access.Principal{}, pattern, rich.Sandbox.ID, ""); w.Code < 300 && verb.Label != access.Public ||
			strings.Contains(w.Body.String(), "sandbox") {
			t.Errorf("%s as a stranger: %d", pattern, w.Code)
		}
		for _, role := range access.BuiltIn {
			checked++
			inProject := access.Principal{Kind: access.Person, Name: "member",
				Bindings: []access.Binding{{Role: role, Scope: access.Scope{Project: rich.Project.ID}}}}
			destroys := strings.HasSuffix(pattern, "/clear") || strings.HasSuffix(pattern, "/delete")
			allowed := verb.Label == access.Open || verb.Label == access.Public ||
				role.Grants(verb) && verb.Reach != access.OnServer
			if !destroys || !allowed {
				w := send(inProject, pattern, rich.Sandbox.ID, "")
				if refused := w.Code == http.StatusForbidden; refused == allowed {
					t.Errorf("%s as %s: %d", pattern, role.Name, w.Code)
				}
			}
			elsewhere := access.Principal{Kind: access.Person, Name: "foreigner",
				Bindings: []access.Binding{{Role: role, Scope: access.Scope{Project: uuid.New()}}}}
			for _, query := range []string{"", "?live", "?env=" + rich.Sandbox.ID.String() + "&q=web"} {
				if query == "?live" && (strings.HasPrefix(pattern, "POST") || verb.Label == access.Open) {
					continue // a stream that is allowed would not end
				}
				unknown := uuid.New()
				got := send(elsewhere, pattern, rich.Sandbox.ID, query)
				query = strings.ReplaceAll(query, rich.Sandbox.ID.String(), unknown.String())
				nowhere := send(elsewhere, pattern, unknown, query)
				if got.Code != nowhere.Code || anyID(got.Body.String()) != anyID(nowhere.Body.String()) {
					t.Errorf("%s%s as %s elsewhere: %d, but of what does not exist: %d", pattern, query, role.Name,
						got.Code, nowhere.Code)
				}
				secret := []string{rich.Production.Name, rich.Staging.Name, rich.Sandbox.Name, rich.Project.Name}
				for _, name := range secret {
					if strings.Contains(got.Body.String(), ">"+name+"<") {
						t.Errorf("%s%s as %s elsewhere names %s", pattern, query, role.Name, name)
					}
				}
			}
		}
	}
	t.Logf("%d answers checked", checked)
}

var parameter, anyUUID = regexp.MustCompile(`\{\w+\}`), regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

func anyID(text string) string { return anyUUID.ReplaceAllString(text, "ID") }

// Who has a role in one environment does not learn from its settings what the project has: which secrets, and which SSH
// servers. Members of the project see both.
func TestSettingsOfTheProjectAreForItsMembers(t *testing.T) {
	t.Parallel()
	rich := servertest.NewRich(t)
	who := &caller{}
	pages, err := New(Config{
		Control: rich.Control, Store: rich.Store, Bus: rich.Bus, Version: servertest.Version, Logger: rich.Log,
		Auth: who, Now: rich.Now, People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents,
		Clusters: rich.Clusters, Catalogue: rich.Catalogue, Resources: rich.Resources,
	})
	if err != nil {
		t.Fatal(err)
	}
	const host = "git.internal.example.org"
	key := host + " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	if err := rich.Control.SetKnownHosts(t.Context(), rich.Project.ID, key); err != nil {
		t.Fatal(err)
	}
	if err := rich.Control.SetProjectSecret(t.Context(), rich.Project.ID, "git-password", "s3cr3t"); err != nil {
		t.Fatal(err)
	}
	for scope, sees := range map[access.Scope]bool{
		{Environment: rich.Sandbox.ID}: false, {Project: rich.Project.ID}: true,
	} {
		who.Principal = access.Principal{Kind: access.Person, Name: "member",
			Bindings: []access.Binding{{Role: access.Administrator, Scope: scope}}}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/e/"+rich.Sandbox.ID.String()+"/settings", nil))
		for _, text := range []string{host, "Set for the project", "the whole project"} {
			if w.Code != 200 || strings.Contains(w.Body.String(), text) != sees {
				t.Errorf("in %s: %d, %q is to be seen: %v", scope, w.Code, text, sees)
			}
		}
	}
}
