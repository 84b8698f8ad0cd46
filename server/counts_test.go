package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/access"
)

type sender access.Principal

func (s sender) Authenticate(*http.Request) (access.Principal, error) {
	return access.Principal(s), nil
}

// The counts of webhooks are about all projects, so that only administrators of the server see them.
func TestWhoSeesTheCountsOfWebhooks(t *testing.T) {
	hooks := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	with := func(r access.Role, s access.Scope) sender {
		return sender{Kind: access.Person, Name: "noor", Bindings: []access.Binding{{Role: r, Scope: s}}}
	}
	for _, c := range []struct {
		who        sender
		path       string
		wantStatus int
	}{
		{sender{}, "/hooks/counts", 401},
		{with(access.Administrator, access.Scope{Project: uuid.New()}), "/hooks/counts", 403},
		{with(access.Administrator, access.Scope{}), "/hooks/counts", 200},
		{sender{}, "/hooks/x/counts", 401},
		{sender{}, "/hooks/counts/", 401},
		{sender{}, "/hooks/github", 200}, // proves itself by its signature
	} {
		w := httptest.NewRecorder()
		withCounts(c.who, hooks).ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.wantStatus {
			t.Errorf("%s as %+v: %d, want %d", c.path, c.who, w.Code, c.wantStatus)
		}
	}
}
