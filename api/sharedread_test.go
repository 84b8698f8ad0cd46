package api

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"ordain.dev/ordain/internal/shared"
)

// Many programs that list the resources at the same time share few loads, each gets the encoding that it accepts, and
// one that changes something sees its change.
func TestListsOfResourcesAreShared(t *testing.T) {
	c, _ := rich(t)
	list := func(encoding, query string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/api/v2/resource"+query, nil)
		r.Header.Set(tidHeader, c.tid)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		return w
	}
	read := func(w *httptest.ResponseRecorder) string {
		var from io.Reader = w.Body
		var err error
		switch w.Header().Get("Content-Encoding") {
		case "zstd":
			from, err = zstd.NewReader(w.Body)
		case "gzip":
			from, err = gzip.NewReader(w.Body)
		}
		if err != nil {
			t.Error(err)
			return ""
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	first := list("", "?deploy_summary=True")
	want, tag := read(first), first.Header().Get("ETag")
	if first.Code != 200 || !strings.Contains(want, `"resource_id"`) || tag == "" {
		t.Fatalf("%d: %s", first.Code, want)
	}
	for _, encoding := range []string{"", "gzip", "zstd, gzip", "gzip, zstd;q=0"} {
		w := list(encoding, "?deploy_summary=True")
		if got := read(w); got != want || w.Header().Get("ETag") != tag {
			t.Errorf("%q: the answer has %d bytes and the ETag %s, want %d and %s", encoding, len(got),
				w.Header().Get("ETag"), len(want), tag)
		}
		name, _, _ := strings.Cut(encoding, ",")
		if len(want) > 1<<10 && w.Header().Get("Content-Encoding") != name {
			t.Errorf("%q: the answer is in %q", encoding, w.Header().Get("Content-Encoding"))
		}
	}
	if other := read(list("", "?deploy_summary=True&limit=1")); other == want {
		t.Error("another query gets the same answer")
	}
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if w := list("gzip", ""); w.Code != 200 {
				t.Errorf("one of many gets %d", w.Code)
			}
		})
	}
	all.Wait()
	r := httptest.NewRequest("GET", "/api/v2/resource", nil)
	r.Header.Set(tidHeader, "00000000-0000-4000-8000-000000000000")
	w := httptest.NewRecorder()
	if c.handler.ServeHTTP(w, r); w.Code != 404 {
		t.Errorf("an environment that does not exist: %d", w.Code)
	}
}

// Requests that come while a load runs wait for one further load, and all get its bytes.
func TestEqualReadsWaitForOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{reads: shared.Loads[sharedKey, *readyAnswer]{AtOnce: 1}}
		d := &declaration{path: "/list"}
		var loads atomic.Int32
		goOn := make(chan struct{})
		load := func(context.Context, resourcesPage) (any, error) {
			n := loads.Add(1)
			<-goOn
			return n, nil
		}
		var all sync.WaitGroup
		ask := func(want string) {
			all.Go(func() {
				answer, err := share(t.Context(), s, d, resourcesPage{}, load)
				if err != nil {
					t.Error(err)
					return
				}
				w := httptest.NewRecorder()
				answer.(*readyAnswer).body.Serve(w, httptest.NewRequest("GET", "/list", nil))
				if w.Body.String() != want {
					t.Errorf("got load %s, want %s", w.Body, want)
				}
			})
			synctest.Wait()
		}
		for _, want := range []string{"1", "2", "2", "2", "2"} {
			ask(want)
		}
		close(goOn)
		all.Wait()
		if n := loads.Load(); n != 2 {
			t.Errorf("%d loads", n)
		}
	})
}

// Arguments that differ in anything are different reads.
func TestSharedArguments(t *testing.T) {
	dash := "-"
	seen := map[string]int{}
	for i, p := range []resourcesPage{
		{}, {Summary: true}, {pageIn: pageIn{paging: paging{Limit: 1}}}, {pageIn: pageIn{paging: paging{Start: &dash}}},
		{pageIn: pageIn{paging: paging{End: &dash}}}, {pageIn: pageIn{paging: paging{FirstID: &dash}}},
		{pageIn: pageIn{paging: paging{LastID: &dash}}}, {pageIn: pageIn{paging: paging{Sort: "-"}}},
		{pageIn: pageIn{paging: paging{Filter: filters{"a": {"b", "c"}}}}},
		{pageIn: pageIn{paging: paging{Filter: filters{"a": {"b"}, "c": nil}}}},
		{pageIn: pageIn{paging: paging{Filter: filters{"a": {"b c"}}}}},
		{pageIn: pageIn{paging: paging{Filter: filters{"a": {"\xff"}}}}},
		{pageIn: pageIn{paging: paging{Filter: filters{"a": {"\ufffd"}}}}},
		{pageIn: pageIn{inEnvironment: inEnvironment{Env: [16]byte{1}}}},
	} {
		if other, ok := seen[p.sharedArguments()]; ok {
			t.Errorf("%d and %d are the same: %s", other, i, p.sharedArguments())
		}
		seen[p.sharedArguments()] = i
	}
}
