package api

import (
	"net/http/httptest"
	"testing"
)

// A client that polls a list gets 304 and no body until something changes.
func TestPolling(t *testing.T) {
	c, _ := rich(t)
	poll := func(known string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/api/v2/agents", nil)
		r.Header.Set(tidHeader, c.tid)
		if known != "" {
			r.Header.Set("If-None-Match", known)
		}
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		return w
	}
	first := poll("")
	tag := first.Header().Get("ETag")
	if first.Code != 200 || tag == "" || first.Header().Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("%d with the headers %v", first.Code, first.Header())
	}
	if again := poll(`"other", ` + tag); again.Code != 304 || again.Body.Len() > 0 ||
		again.Header().Get("ETag") != tag {
		t.Errorf("nothing changed, but the answer is %d with %d bytes", again.Code, again.Body.Len())
	}
	c.call("POST", "/api/v2/agent/web01/pause", "", 200)
	if changed := poll(tag); changed.Code != 200 || changed.Header().Get("ETag") == tag {
		t.Errorf("an agent was paused, but the answer is %d", changed.Code)
	}
}
