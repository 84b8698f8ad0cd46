package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ordain.dev/ordain/api/client"
	"ordain.dev/ordain/internal/testing/racedetector"
)

// child is a server in its own process, which can be killed.
type child struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	client *client.Client
	url    string
}

// startChild runs `ordain up` with its state in dir, and waits until it prints its address.
func startChild(t *testing.T, dir string) *child {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	c := &child{t: t, dir: dir}
	c.cmd = exec.Command(os.Args[0], "up", "--state-dir", filepath.Join(dir, "state"), "--log-dir",
		filepath.Join(dir, "log"), "--port", "0")
	c.cmd.Env = append(os.Environ(), "ORDAIN_CONFIG_CACHE_DIR="+filepath.Join(cache, "ordain-tests"),
		"ORDAIN_SERVER_LOG_LEVEL=debug", "ORDAIN_ISOLATION_ALLOW_WRITE="+sitesIn(dir), "ORDAIN_ISOLATION_FIRST_USER=0")
	if err := os.MkdirAll(sitesIn(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { racedetector.Check(t) })
	t.Cleanup(c.kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, found := strings.Cut(lines.Text(), " is up: "); found {
			c.url = url
			if c.client, err = client.New(url); err != nil {
				t.Fatal(err)
			}
			go func() { // the pipe must not fill up
				for lines.Scan() {
					continue
				}
			}()
			return c
		}
	}
	t.Fatal("the server did not come up\n" + c.log())
	return nil
}

// kill kills the server, as the kernel would.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

func (c *child) log() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "log", "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8000):])
}

// bind makes an environment for a repository, or for none, and returns its id.
func (c *child) bind(repo string) string {
	c.t.Helper()
	var project, env struct {
		ID string `json:"id"`
	}
	ctx := c.t.Context()
	if err := c.client.Call(ctx, http.MethodPut, "/api/v2/project", "", map[string]any{"name": "p"},
		&project); err != nil {
		c.t.Fatal(err)
	}
	body := map[string]any{"project_id": project.ID, "name": "e"}
	if repo != "" {
		body["repository"], body["branch"] = repo, "main"
	}
	if err := c.client.Call(ctx, http.MethodPut, "/api/v2/environment", "", body, &env); err != nil {
		c.t.Fatal(err)
	}
	return env.ID
}

// until waits until done reports true. It asks whenever a live page of the console
// changes; problem says what is still missing.
func (c *child) until(page string, done func(ctx context.Context) (ok bool, problem string)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+page+"?live", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		c.t.Fatalf("%s is no live page: %s, %s", page, res.Status, got)
	}
	problem := "no event yet"
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatalf("waited in vain: %s: %v\n%s", problem, err, c.log())
		}
		if !strings.HasPrefix(line, "event: ") {
			continue
		}
		var ok bool
		if ok, problem = done(ctx); ok {
			return
		}
	}
}

// waitDeployed waits until there are n resources and all of them are deployed.
func (c *child) waitDeployed(env string, n int) {
	c.t.Helper()
	c.until("/e/"+env, func(ctx context.Context) (bool, string) {
		var rows []struct {
			Status string `json:"status"`
		}
		err := c.client.Call(ctx, http.MethodGet, "/api/v2/resource?limit=100", env, nil, &rows)
		done := err == nil && len(rows) == n
		for _, r := range rows {
			done = done && r.Status == "deployed"
		}
		return done, fmt.Sprintf("%d deployed resources: %v %v", n, rows, err)
	})
}
