package gitsync

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// Azure DevOps refuses clients without multi_ack, and other servers do not know it. We can
// clone from both, with and without a depth, and follow pushes and force-pushes.
func TestServersThatInsistOnAcknowledgements(t *testing.T) {
	tool.Long(t, "a server of Git for each answer")
	const multi, detailed = "multi_ack", "multi_ack_detailed"
	for name, tt := range map[string]struct {
		hide  []string // capabilities that the server does not have
		wants string   // what it insists on
	}{
		"as Azure DevOps":   {[]string{detailed}, multi},
		"in detail":         {nil, detailed},
		"of neither":        {[]string{detailed, multi}, ""},
		"of nothing at all": {[]string{detailed, multi, "side-band-64k", "ofs-delta", "no-progress", "shallow"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			server := insisting(t, o.serve("").URL, tt.hide, tt.wants)
			for _, depth := range []int{0, 1} {
				s, dir := newSyncer(t), filepath.Join(t.TempDir(), "c")
				src := Source{URL: server + "/origin.git", Branch: "main", Depth: depth}
				for n := range 4 {
					text := strconv.Itoa(depth*10 + n + 1)
					if n == 3 {
						o.git("reset", "-q", "--hard", "HEAD~2")
					}
					commit := o.push("push "+text, map[string]string{"a": text, "f" + text: text})
					if rev, report := fetch(t, s, src); rev.Commit != commit || report.Rebuilt {
						t.Fatalf("%+v, %+v", rev, report)
					}
					checkout(t, s, src, commit, dir)
					if got := tree(t, dir); got["a"] != text || got["f"+text] != text {
						t.Errorf("%v", got)
					}
				}
			}
		})
	}
}

// insisting is a proxy of a server that hides capabilities, and refuses clients that do not
// announce one of them.
func insisting(t *testing.T, behind string, hide []string, wants string) string {
	t.Helper()
	to, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodGet {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		for _, name := range hide { // of the same length, because lines begin with their length
			for _, before := range []string{" ", "\x00"} {
				body = bytes.ReplaceAll(body, []byte(before+name+" "),
					[]byte(before+strings.Repeat("x", len(name))+" "))
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			first, _, _ := strings.Cut(string(body), "\n")
			if wants != "" && !strings.Contains(first+" ", " "+wants+" ") {
				http.Error(w, "the client does not speak "+wants, http.StatusBadRequest)
				return
			}
			for _, name := range hide {
				if strings.Contains(first+" ", " "+name+" ") {
					t.Errorf("the client asks for %s, which the server has not: %q", name, first)
				}
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
