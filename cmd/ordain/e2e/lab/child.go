package lab

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

// Child is a server in its own process, which can be killed.
type Child struct {
	T      *testing.T
	Dir    string
	Cmd    *exec.Cmd
	Client *client.Client
	URL    string
}

// StartChild runs `ordain up` with its state in dir, and waits until it prints its address.
func StartChild(t *testing.T, dir string) *Child {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	c := &Child{T: t, Dir: dir}
	c.Cmd = exec.Command(os.Args[0], "up", "--state-dir", filepath.Join(dir, "state"), "--log-dir",
		filepath.Join(dir, "log"), "--port", "0")
	c.Cmd.Env = append(os.Environ(), "ORDAIN_CONFIG_CACHE_DIR="+filepath.Join(cache, "ordain-tests"),
		"ORDAIN_SERVER_LOG_LEVEL=debug", "ORDAIN_ISOLATION_ALLOW_WRITE="+sitesIn(dir), "ORDAIN_ISOLATION_FIRST_USER=0")
	if err := os.MkdirAll(sitesIn(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Cmd.Stderr = os.Stderr
	out, err := c.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { racedetector.Check(t) })
	t.Cleanup(c.Kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, found := strings.Cut(lines.Text(), " is up: "); found {
			c.URL = url
			if c.Client, err = client.New(url); err != nil {
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
	t.Fatal("the server did not come up\n" + c.Log())
	return nil
}

// Kill kills the server, as the kernel would.
func (c *Child) Kill() {
	if c.Cmd.ProcessState == nil {
		_ = c.Cmd.Process.Kill()
		_ = c.Cmd.Wait()
	}
}

func (c *Child) Log() string {
	text, err := os.ReadFile(filepath.Join(c.Dir, "log", "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8000):])
}

// Bind makes an environment for a repository, or for none, and returns its id.
func (c *Child) Bind(repo string) string {
	c.T.Helper()
	var project, env struct {
		ID string `json:"id"`
	}
	ctx := c.T.Context()
	if err := c.Client.Call(ctx, http.MethodPut, "/api/v2/project", "", map[string]any{"name": "p"},
		&project); err != nil {
		c.T.Fatal(err)
	}
	body := map[string]any{"project_id": project.ID, "name": "e"}
	if repo != "" {
		body["repository"], body["branch"] = repo, "main"
	}
	if err := c.Client.Call(ctx, http.MethodPut, "/api/v2/environment", "", body, &env); err != nil {
		c.T.Fatal(err)
	}
	return env.ID
}

// Until waits until done reports true. It asks whenever a live page of the console
// changes; problem says what is still missing.
func (c *Child) Until(page string, done func(ctx context.Context) (ok bool, problem string)) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+page+"?live", nil)
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		c.T.Fatalf("%s is no live page: %s, %s", page, res.Status, got)
	}
	problem := "no event yet"
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.T.Fatalf("waited in vain: %s: %v\n%s", problem, err, c.Log())
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

// WaitDeployed waits until there are n resources and all of them are deployed.
func (c *Child) WaitDeployed(env string, n int) {
	c.T.Helper()
	c.Until("/e/"+env, func(ctx context.Context) (bool, string) {
		var rows []struct {
			Status string `json:"status"`
		}
		err := c.Client.Call(ctx, http.MethodGet, "/api/v2/resource?limit=100", env, nil, &rows)
		done := err == nil && len(rows) == n
		for _, r := range rows {
			done = done && r.Status == "deployed"
		}
		return done, fmt.Sprintf("%d deployed resources: %v %v", n, rows, err)
	})
}
