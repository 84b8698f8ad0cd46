package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" // names files as clients ask for them
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/webhooks"
)

// ownChild starts a server in its own process for one test.
func ownChild(t *testing.T) *lab.Child {
	t.Helper()
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Log(err)
		}
	})
	return lab.StartChild(t, dir)
}

// address returns the host and port of a server.
func address(c *lab.Child) string { return strings.TrimPrefix(c.URL, "http://") }

// send sends a request and returns the status and the body of the answer.
func send(c *lab.Child, method, path, env string, body io.Reader, headers ...string) (int, string) {
	c.T.Helper()
	r, err := http.NewRequestWithContext(c.T.Context(), method, c.URL+path, body)
	if err != nil {
		c.T.Fatal(err)
	}
	if env != "" {
		r.Header.Set("X-Inmanta-tid", env)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

// memory returns the resident memory of the server in MB, now and at its peak since calm.
func memory(c *lab.Child) (now, peak int) {
	c.T.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Cmd.Process.Pid))
	if err != nil {
		c.T.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		kB, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			now = kB >> 10
		case "VmHWM":
			peak = kB >> 10
		}
	}
	return now, peak
}

// growth returns by how many MB the server's memory grew at most while do ran.
func growth(c *lab.Child, do func()) int {
	c.T.Helper()
	// 5 resets the peak to what is resident now.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.Cmd.Process.Pid), []byte("5"), 0); err != nil {
		c.T.Fatal(err)
	}
	before, _ := memory(c)
	do()
	_, peak := memory(c)
	return peak - before
}

// repeated is a text of at least size bytes: a beginning, a part again and again, and an end.
func repeated(begin, part, end string, size int) io.Reader {
	return io.MultiReader(strings.NewReader(begin), &repeater{part: []byte(part), left: size / len(part)},
		strings.NewReader(end))
}

type repeater struct {
	part []byte
	left int
	rest []byte
}

func (r *repeater) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 {
			if r.left == 0 {
				return n, io.EOF
			}
			r.left--
			r.rest = r.part
		}
		m := copy(p[n:], r.rest)
		n, r.rest = n+m, r.rest[m:]
	}
	return n, nil
}

func gzipped(t *testing.T, in io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	_, err := io.Copy(zip, in)
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// maxGrowth is by how many MB bodies of attackers may make the server grow. The race detector itself takes several
// times the memory of the program.
func maxGrowth() int {
	if racedetector.On {
		return 1500
	}
	return 300
}

// Small bodies that become huge once they are unpacked or decoded do not take the server's memory, two at once neither.
func TestBodiesThatGrow(t *testing.T) {
	tool.Long(t, "unpacks bodies of up to 98 MB")
	c := ownChild(t)
	env := c.Bind("")
	size := 98 << 20
	if racedetector.On {
		size = 24 << 20 // the detector makes this slow
	}
	sum := sha1.Sum(make([]byte, size/4*3))
	zeros := hex.EncodeToString(sum[:])
	for name, attack := range map[string]struct {
		method, path string
		body         []byte
	}{
		"lists in a name": {"PUT", "/api/v2/project",
			gzipped(t, repeated(`{"name":[`, `[],`, `1]}`, size))},
		"unknown arguments": {"PUT", "/api/v2/project",
			gzipped(t, repeated(`{"name":"x","more":[`, `{},`, `1]}`, size))},
		"lists in a parameter": {"PUT", "/api/v2/parameters/x",
			gzipped(t, repeated(`{"source":"user","value":[`, `[],`, `1]}`, 9<<20))},
		"depth": {"PUT", "/api/v2/project",
			gzipped(t, repeated(`{"name":`, `[`, ``, size))},
		"a file of zeros": {"PUT", "/api/v1/file/0000000000000000000000000000000000000000",
			gzipped(t, repeated(`{"content":"`, `AAAA`, `"}`, size))},
		"no file": {"PUT", "/api/v1/file/0000000000000000000000000000000000000000",
			gzipped(t, repeated(`{"content":[`, `[],`, `1]}`, size))},
		"a file that is stored": {"PUT", "/api/v1/file/" + zeros,
			gzipped(t, repeated(`{"content":"`, `AAAA`, `"}`, size))},
	} {
		var statuses [2]int
		var took [2]time.Duration
		grown := growth(c, func() {
			var both sync.WaitGroup
			for i := range statuses {
				both.Go(func() {
					began := time.Now()
					statuses[i], _ = send(c, attack.method, attack.path, env, bytes.NewReader(attack.body),
						"Content-Type", "application/json", "Content-Encoding", "gzip")
					took[i] = time.Since(began)
				})
			}
			both.Wait()
		})
		t.Logf("%s: %d kB in gzip, two at once: %v after %v, %d MB", name, len(attack.body)>>10, statuses, took, grown)
		if grown > maxGrowth() {
			t.Errorf("%s: the server grew by %d MB", name, grown)
		}
		for _, status := range statuses {
			stored := status == http.StatusOK && strings.HasSuffix(attack.path, zeros)
			if !stored && (status < 400 || status == 500) {
				t.Errorf("%s is answered %d", name, status)
			}
		}
	}
}

// A webhook that proves nothing is not read, however large it is; one that proves who sends it is read within bounds.
func TestWebhooksThatGrow(t *testing.T) {
	tool.Long(t, "many bodies of 5 MB")
	c := ownChild(t)
	const secret = "0123456789abcdef0123456789abcdef"
	env := c.Bind("https://forge.example/acme/shop.git")
	if err := c.Client.Call(t.Context(), "PUT", "/api/v2/environment/"+env+"/secret/webhook", "",
		map[string]any{"value": secret}, nil); err != nil {
		t.Fatal(err)
	}
	const repository = `{"repository":{"clone_url":"https://forge.example/acme/shop.git"},"ref":"refs/heads/main",`
	read := func(in io.Reader) []byte {
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, attack := range map[string]struct {
		body   []byte
		secret string
		status int
	}{
		"24 MB, wrongly signed": {
			read(repeated(repository+`"commits":[`, `{},`, `{}]}`, 24<<20)), "wrong", http.StatusRequestEntityTooLarge},
		"5 MB, wrongly signed": {
			read(repeated(repository+`"commits":[`, `{},`, `{}]}`, 5<<20-1000)), "wrong", http.StatusUnauthorized},
		"5 MB, wide": {
			read(repeated(repository+`"commits":[`, `{},`, `{}]}`, 5<<20-1000)), secret, http.StatusBadRequest},
		"5 MB, paths": {
			read(repeated(repository+`"commits":[{"added":[`, `"",`, `""]}]}`, 5<<20-1000)), secret,
			http.StatusBadRequest},
		"5 MB, deep": {
			read(repeated(repository+`"commits":`, `[`, ``, 5<<20-1000)), secret, http.StatusBadRequest},
	} {
		const senders = 8
		var statuses [senders]int
		grown := growth(c, func() {
			var all sync.WaitGroup
			for i := range senders {
				all.Go(func() {
					statuses[i], _ = send(c, "POST", "/hooks/github", "", bytes.NewReader(attack.body),
						"Content-Type", "application/json", "X-GitHub-Event", "push",
						webhooks.HeaderSignature, webhooks.Sign(attack.body, []byte(attack.secret)))
				})
			}
			all.Wait()
		})
		t.Logf("%s, %d at once: %v, %d MB", name, senders, statuses, grown)
		if grown > maxGrowth() {
			t.Errorf("%s: the server grew by %d MB", name, grown)
		}
		for _, status := range statuses {
			// A server that closes the connection before it has read all may not be heard.
			if status != attack.status && status != http.StatusServiceUnavailable && status != 0 {
				t.Errorf("%s is answered %d, want %d", name, status, attack.status)
			}
		}
	}
}

// Clients that stop in the middle of a request do not stay, and do not keep others out. A live page stays.
func TestClientsThatStall(t *testing.T) {
	tool.Long(t, "waits for the ends of clients that stall")
	c := ownChild(t)
	env := c.Bind("")
	live, err := http.Get(c.URL + "/e/" + env + "?live")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()

	const header = "PUT /api/v2/project HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	var all sync.WaitGroup
	began := time.Now()
	var slowest time.Duration
	var mu sync.Mutex
	for i := range 400 {
		conn, err := net.Dial("tcp", address(c))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text := "G"
		switch {
		case i%40 == 1: // in the body
			text = header + "Content-Length: 1000\r\n\r\n{"
		case i%40 == 2: // in a body that nothing reads
			text = "POST /hooks/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		trickle, stop := context.WithCancel(t.Context())
		if i%40 == 3 {
			if _, err := io.WriteString(conn, header+"Content-Length: 1000000\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			go func() {
				tick := time.NewTicker(500 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-trickle.Done():
						return
					case <-tick.C:
						_, _ = io.WriteString(conn, "{") // fails once the server has closed the connection
					}
				}
			}()
		}
		all.Go(func() {
			defer stop()
			if err := conn.SetReadDeadline(time.Now().Add(40 * time.Second)); err != nil {
				t.Error(err)
			}
			_, err := io.Copy(io.Discard, conn)
			if timeout := net.Error(nil); err != nil && errors.As(err, &timeout) && timeout.Timeout() {
				t.Errorf("client %d is still there", i)
			}
			mu.Lock()
			slowest = max(slowest, time.Since(began))
			mu.Unlock()
		})
	}
	if status, text := send(c, "GET", "/api/v1/serverstatus", "", nil); status != 200 {
		t.Errorf("with 400 such clients, others get %d %s", status, text)
	}
	all.Wait()
	t.Logf("the last of 400 clients was gone after %v", slowest)
	if slowest > 25*time.Second {
		t.Errorf("the last client was gone after %v", slowest)
	}
	lines := make([]byte, 1<<16)
	if _, err := live.Body.Read(lines); err != nil {
		t.Errorf("the live page ended: %v", err)
	}
}

// While the database is stopped, probes and the status answer at once.
func TestStatusWhileTheDatabaseIsStopped(t *testing.T) {
	tool.Long(t, "waits for a database that stands still")
	c := ownChild(t)
	env := c.Bind("")
	soon(c, "/readyz", http.StatusOK, 0)
	text, err := os.ReadFile(filepath.Join(c.Dir, "state", "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	stopped := append(childrenOf(t, postmaster), postmaster)
	signal := func(s syscall.Signal) {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, s) // a backend may have ended by itself
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)

	// Other calls wait for the database meanwhile.
	waiting, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	for range 100 {
		go func() {
			r, err := http.NewRequestWithContext(waiting, "GET", c.URL+"/api/v2/resource", nil)
			if err == nil {
				r.Header.Set("X-Inmanta-tid", env)
				if res, err := http.DefaultClient.Do(r); err == nil {
					res.Body.Close()
				}
			}
		}()
	}
	soon(c, "/readyz", http.StatusServiceUnavailable, 0)
	for range 10 {
		soon(c, "/healthz", http.StatusOK, 100*time.Millisecond)
		soon(c, "/readyz", http.StatusServiceUnavailable, 100*time.Millisecond)
	}
	for range 3 {
		var status struct {
			Data struct {
				Slices []struct {
					Name   string `json:"name"`
					Status string `json:"reported_status"`
				} `json:"slices"`
			} `json:"data"`
		}
		text := soon(c, "/api/v1/serverstatus", http.StatusOK, time.Second)
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			t.Fatal(err)
		}
		for _, s := range status.Data.Slices {
			if s.Name == "core.database" && s.Status != "Error" {
				t.Errorf("the database counts as %q", s.Status)
			}
		}
	}
	signal(syscall.SIGCONT)
	soon(c, "/readyz", http.StatusOK, 0)
}

// soon asks for a path until the answer has a status, and requires it within a time unless that is 0.
func soon(c *lab.Child, path string, status int, within time.Duration) string {
	c.T.Helper()
	giveUp := time.Now().Add(30 * time.Second)
	for {
		began := time.Now()
		ctx, cancel := context.WithTimeout(c.T.Context(), 10*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", c.URL+path, nil)
		if err != nil {
			c.T.Fatal(err)
		}
		var text []byte
		got := 0
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			got = res.StatusCode
			text, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}
		cancel()
		took := time.Since(began)
		if within > 0 {
			c.T.Logf("%s: %d after %v", path, got, took)
			if got != status || took > within {
				c.T.Fatalf("%s answers %d after %v (%v): %s", path, got, took, err, text)
			}
			return string(text)
		}
		if got == status {
			return string(text)
		}
		if time.Now().After(giveUp) {
			c.T.Fatalf("%s answers %d (%v): %s", path, got, err, text)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// childrenOf returns the processes that a process started.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
