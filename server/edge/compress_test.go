package edge

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A long text goes out compressed in the best encoding that the client accepts, and arrives whole; what is short, and
// what a client cannot read, stays as it is.
func TestCompress(t *testing.T) {
	long := strings.Repeat("a resource is deployed; ", 500)
	for name, c := range map[string]struct {
		accept, kind, body, want string
	}{
		"the best encoding":  {"gzip, deflate, zstd", "text/html", long, "zstd"},
		"gzip only":          {"gzip;q=0.5", "application/json", long, "gzip"},
		"zstd refused":       {"zstd;q=0, gzip", "application/json", long, "gzip"},
		"a short answer":     {"gzip, zstd", "application/json", `{"data":null}`, ""},
		"an old client":      {"", "application/json", long, ""},
		"a picture":          {"gzip, zstd", "image/png", long, ""},
		"a stream of events": {"gzip, zstd", "text/event-stream", long, "gzip"},
		"a stream in zstd":   {"zstd", "text/event-stream", long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := Compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(http.StatusAccepted)
				half := len(c.body) / 2
				_, _ = io.WriteString(w, c.body[:half])
				if c.kind == "text/event-stream" {
					w.(http.Flusher).Flush()
				}
				_, _ = io.WriteString(w, c.body[half:])
			}))
			r := httptest.NewRequest("GET", "/", nil)
			if c.accept != "" {
				r.Header.Set("Accept-Encoding", c.accept)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("Content-Encoding"); got != c.want {
				t.Errorf("the encoding is %q", got)
			}
			if w.Code != http.StatusAccepted || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("status %d, Vary %q", w.Code, w.Header().Get("Vary"))
			}
			if w.Body.Len() >= len(long) && c.want != "" {
				t.Errorf("%d bytes are not less", w.Body.Len())
			}
			if got := unpack(t, c.want, w.Body); got != c.body {
				t.Errorf("the body arrives as %.80q", got)
			}
		})
	}
}

func unpack(t *testing.T, encoding string, body io.Reader) string {
	t.Helper()
	switch encoding {
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = r
	case "zstd":
		r, err := zstd.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		body = r
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each event of a stream arrives when it is sent, and can be read at once.
func TestAStreamIsCompressedEventByEvent(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(Compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: "+strings.Repeat("deployed ", 200)+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	plain, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(plain)
	for range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || len(line) != len("data: \n")+200*len("deployed ") {
			t.Fatalf("the event %.40q: %v", line, err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
}
