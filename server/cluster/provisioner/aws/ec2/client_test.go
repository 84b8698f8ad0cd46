package ec2

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// against returns a client of a server that answers with what reply says.
func against(t *testing.T, reply func(n int, w http.ResponseWriter, r *http.Request)) (*Client, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply(int(asked.Add(1)), w, r)
	}))
	t.Cleanup(server.Close)
	return New(Config{
		Region: "eu-test-1", Key: "AKIA", Secret: "hunter2", Endpoint: server.URL, Transport: http.DefaultTransport,
	}), &asked
}

const failureXML = `<Response><Errors><Error><Code>%s</Code><Message>no</Message></Error></Errors></Response>`

// A request is signed for its region. Throttling, faults of the server and connections that break are tried again;
// mistakes of the caller are not.
func TestWhatIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		reply func(w http.ResponseWriter)
		times int64
		code  string
	}{
		"throttled": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, failureXML, "RequestLimitExceeded")
		}, maxAttempts, "RequestLimitExceeded"},
		"a proxy's page": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, "<html>no</html>")
		}, maxAttempts, "HTTP502"},
		"cut off": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, maxAttempts, ""},
		"a mistake": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, failureXML, "InvalidAMIID.NotFound")
		}, 1, "InvalidAMIID.NotFound"},
		"not XML": {func(w http.ResponseWriter) { io.WriteString(w, "{}") }, 1, ""},
		"a detour": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "/x")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 1, "HTTP307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, asked := against(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				if auth := r.Header.Get("Authorization"); !strings.Contains(auth, "/eu-test-1/ec2/aws4_request") {
					t.Errorf("Authorization: %s", auth)
				}
				c.reply(w)
			})
			_, err := client.Images(t.Context(), "ami-1")
			var said *Error
			code := ""
			if errors.As(err, &said) {
				code = said.Code
			}
			if err == nil || code != c.code {
				t.Errorf("got %v", err)
			}
			if asked.Load() != c.times {
				t.Errorf("asked %d times, want %d", asked.Load(), c.times)
			}
		})
	}
}

// Instances reads all pages, and a cloud that repeats a page does not keep it for ever.
func TestPagesOfInstances(t *testing.T) {
	client, asked := against(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if want := []string{"", "second", "third"}[min(n, 3)-1]; r.FormValue("NextToken") != want {
			t.Errorf("page %d was asked for with %q", n, r.FormValue("NextToken"))
		}
		next := []string{"second", "third", "third"}[min(n, 3)-1]
		fmt.Fprintf(w, `<R><reservationSet><item><instancesSet><item><instanceId>i-%d</instanceId>`+
			`<instanceState><name>running</name></instanceState><launchTime>2026-11-28T10:00:00.000Z</launchTime>`+
			`</item></instancesSet></item></reservationSet><nextToken>%s</nextToken></R>`, n, next)
	})
	found, err := client.Instances(t.Context(), "tag:x", "y")
	if err != nil || len(found) != 3 || found[2].ID != "i-3" || found[0].State != Running || asked.Load() != 3 {
		t.Errorf("%+v %v after %d pages", found, err, asked.Load())
	}
}
