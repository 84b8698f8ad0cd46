package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// If there is no server, the server answers with an error, or a name is ambiguous, the
// error says what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err := New(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Call(context.Background(), "GET", "/api/v2/health", "", nil, nil)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "ordain up") {
		t.Errorf("no server: %v", err)
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v2/project":
			_, _ = w.Write([]byte(`{"data":[
				{"name":"a","environments":[{"id":"1","name":"prod"}]},
				{"name":"b","environments":[{"id":"2","name":"prod"},{"id":"3","name":"lab"}]}]}`))
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"message":"already released"}`))
		}
	}))
	defer server.Close()
	if c, err = New(server.URL); err != nil {
		t.Fatal(err)
	}
	err = c.Call(context.Background(), "POST", "/api/v1/version/1", "x", nil, nil)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "already released") {
		t.Errorf("a conflict: %v", err)
	}
	if e, err := c.Find(context.Background(), "lab"); err != nil || e.ID != "3" {
		t.Errorf("lab is %v, %v", e, err)
	}
	if e, err := c.Find(context.Background(), "b/prod"); err != nil || e.ID != "2" {
		t.Errorf("b/prod is %v, %v", e, err)
	}
	if _, err := c.Find(context.Background(), "prod"); !fault.Is(err, fault.Conflict) {
		t.Errorf("an ambiguous name: %v", err)
	}
	if _, err := c.Find(context.Background(), "none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := New("localhost:8888"); err == nil {
		t.Error("an address without a scheme is accepted")
	}
}
