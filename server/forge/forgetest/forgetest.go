// Package forgetest is a forge for tests: an HTTP server that speaks as
// GitHub, GitLab or Gitea do, and keeps what it is told. It is the edge of the
// network in tests, refuses what the real ones refuse, and fails a test that asks
// or gets something that the forge's published OpenAPI document does not have.
package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Token is the token that a fake forge takes.
const Token = "fake-forge-token-0123456789"

// Pull is a pull request on the forge.
type Pull struct {
	Number int
	State  string // open, closed or merged
	Title  string
	Author string
	Fork   bool
	Base   string
	Head   string
	// Unmergeable: the forge says so.
	Unmergeable bool
}

// Comment is a comment on a pull request.
type Comment struct {
	ID     int64
	Number int
	Author string
	Body   string
	Edits  int
}

// Status is the state of a commit, in the forge's own words.
type Status struct{ Commit, Context, State, Description, URL string }

// Call is a request that the forge got.
type Call struct {
	Method, Path string
	Body         map[string]any
}

// Server is a fake forge with one repository, acme/shop.
type Server struct {
	*httptest.Server
	Kind string // github, gitlab or gitea
	// Other answers what is not of the API, such as Git; it is set before the first request.
	Other http.Handler

	t        testing.TB
	contract *contract
	mu       sync.Mutex
	moved    chan struct{}
	pulls    map[int]*Pull
	comments []*Comment
	statuses []Status
	writers  map[string]bool
	branches map[string]string
	guarded  map[string]Guard
	calls    []Call
	answer   func(*http.Request) (int, http.Header, string) // before anything else; 0 goes on
	next     int64
}

// New starts a forge; it ends with the test.
func New(t testing.TB, kind string) *Server {
	s := &Server{
		Kind:     kind,
		t:        t,
		contract: newContract(t, kind),
		moved:    make(chan struct{}),
		pulls:    map[int]*Pull{},
		writers:  map[string]bool{"ordain": true},
		branches: map[string]string{},
		guarded:  map[string]Guard{},
		next:     100,
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Do changes the forge.
func (s *Server) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.moved)
	s.moved = make(chan struct{})
}

// Put opens or changes a pull request.
func (s *Server) Put(p Pull) { s.Do(func() { s.pulls[p.Number] = &p }) }

// Guard is how a forge protects a branch.
type Guard string

// The ways to protect a branch.
const (
	GuardNone    Guard = ""
	GuardRule    Guard = "rule"    // of the branch: nobody pushes
	GuardOthers  Guard = "others"  // of the branch: the user of the token may push; GitHub knows no such rule
	GuardRuleset Guard = "ruleset" // of the repository; only GitHub has these
)

// Protect protects a branch from now on.
func (s *Server) Protect(branch string, how Guard) { s.Do(func() { s.guarded[branch] = how }) }

// Writer says that somebody may write to the repository.
func (s *Server) Writer(name string) { s.Do(func() { s.writers[name] = true }) }

// Answer answers requests before the forge does; a code of 0 leaves them to it.
func (s *Server) Answer(f func(*http.Request) (code int, header http.Header, body string)) {
	s.Do(func() { s.answer = f })
}

// Comments gives the comments on a pull request.
func (s *Server) Comments(number int) (out []Comment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.comments {
		if c.Number == number {
			out = append(out, *c)
		}
	}
	return out
}

// Comment adds a comment of somebody.
func (s *Server) Comment(number int, author, body string) (id int64) {
	s.Do(func() {
		s.next++
		id = s.next
		s.comments = append(s.comments, &Comment{ID: id, Number: number, Author: author, Body: body})
	})
	return id
}

// Statuses gives all that was said of commits, in order.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Status(nil), s.statuses...)
}

// Status gives the last that a context said of a commit.
func (s *Server) Status(commit, context string) (last Status) {
	for _, one := range s.Statuses() {
		if one.Commit == commit && one.Context == context {
			last = one
		}
	}
	return last
}

// Calls gives the requests that were let in.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Moved is closed when something changes next.
func (s *Server) Moved() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.Other != nil && !strings.HasPrefix(r.URL.Path, "/api/") {
		s.Other.ServeHTTP(w, r)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	var body map[string]any
	if len(raw) > 0 && json.Unmarshal(raw, &body) != nil {
		say(w, 400, []byte(`{"message":"Problems parsing JSON"}`))
		return
	}
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		if code, header, text := answer(r); code != 0 {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(code)
			fmt.Fprint(w, text)
			return
		}
	}
	if !s.known(r) {
		say(w, 401, []byte(`{"message":"Bad credentials"}`))
		return
	}
	s.Do(func() {
		s.calls = append(s.calls, Call{r.Method, r.URL.Path, body})
		code, out := s.route(r, body)
		answer, err := json.Marshal(out)
		if err != nil {
			s.t.Error(err)
		}
		s.contract.check(r, raw, code, answer)
		say(w, code, answer)
	})
}

func say(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body) // who asked went away
}

func (s *Server) known(r *http.Request) bool {
	switch s.Kind {
	case "github":
		return r.Header.Get("Authorization") == "Bearer "+Token
	case "gitlab":
		return r.Header.Get("PRIVATE-TOKEN") == Token
	}
	return r.Header.Get("Authorization") == "token "+Token
}

// prefix is where a repository begins in the paths of a forge.
var prefix = map[string]string{
	"github": "/api/v3/repos/acme/shop/",
	"gitlab": "/api/v4/projects/acme%2Fshop/",
	"gitea":  "/api/v1/repos/acme/shop/",
}

func (s *Server) route(r *http.Request, body map[string]any) (int, any) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix[s.Kind])
	if !ok {
		return 404, map[string]any{"message": "Not Found"}
	}
	parts := append([]string{r.Method}, strings.Split(rest, "/")...)
	if s.Kind == "gitlab" {
		return s.gitlab(r, parts, body)
	}
	return s.hub(parts, body)
}

func (s *Server) pullNamed(text string) *Pull {
	var n int
	fmt.Sscan(text, &n)
	return s.pulls[n]
}

// move gives a branch another commit; the pull requests of the branch follow.
func (s *Server) move(branch, head string) {
	for _, pull := range s.pulls {
		if pull.State == "open" && pull.Head == s.branches[branch] {
			pull.Head = head
		}
	}
	s.branches[branch] = head
}

func (s *Server) commentNamed(text string) *Comment {
	for _, c := range s.comments {
		if fmt.Sprint(c.ID) == text {
			return c
		}
	}
	return nil
}

func (s *Server) addComment(number int, body string) *Comment {
	s.next++
	c := &Comment{ID: s.next, Number: number, Author: "ordain", Body: body}
	s.comments = append(s.comments, c)
	return c
}

// exists tells that there is a branch: main is always there.
func (s *Server) exists(branch string) bool { return branch == "main" || s.branches[branch] != "" }

func text(body map[string]any, name string) string { t, _ := body[name].(string); return t }
