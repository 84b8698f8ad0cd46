// Package peer starts servers to be measured, Ordain and the reference, each
// with a database of its own, and speaks the REST API that both answer.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/client"
)

// Server is a running server. Its methods are for one goroutine.
type Server struct {
	Name   string
	client *client.Client
	cmd    *exec.Cmd
	stop   []func()
}

// start runs a command as a process group of its own, its output in a file.
func (s *Server) start(dir string, env []string, name string, args ...string) error {
	log, err := os.Create(filepath.Join(dir, s.Name+".out"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(name, args...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = dir, env, log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.stop = append(s.stop, func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = s.cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
		}
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	})
	return nil
}

// Stop ends the server and its database.
func (s *Server) Stop() {
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
	s.stop = nil
}

// answers waits until the server answers.
func (s *Server) answers(ctx context.Context, port int) error {
	var err error
	if s.client, err = client.New("http://127.0.0.1:" + strconv.Itoa(port)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := s.client.Call(ctx, http.MethodGet, "/api/v2/health", "", nil, nil)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not answer: %w", s.Name, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Bind makes an environment for a repository and gives its id.
func (s *Server) Bind(ctx context.Context, repo, branch string) (string, error) {
	var project, env struct {
		ID string `json:"id"`
	}
	if err := s.client.Call(ctx, http.MethodPut, "/api/v2/project", "", map[string]any{"name": "bench"}, &project); err != nil {
		return "", err
	}
	err := s.client.Call(ctx, http.MethodPut, "/api/v2/environment", "", map[string]any{
		"project_id": project.ID, "name": "bench", "repository": repo, "branch": branch,
	}, &env)
	return env.ID, err
}

// Trigger asks for a sync and compile.
func (s *Server) Trigger(ctx context.Context, env string) error {
	return s.client.Call(ctx, http.MethodPost, "/api/v1/notify/"+env, "", map[string]any{"update": true}, nil)
}

// failure tells that the newest compile failed; nil when it did not, or is not done.
func (s *Server) failure(ctx context.Context, env string) error {
	var newest []struct {
		ID      string `json:"id"`
		Success *bool  `json:"success"`
	}
	err := s.client.Call(ctx, http.MethodGet, "/api/v2/compilereport?limit=1", env, nil, &newest)
	if err != nil || len(newest) == 0 || newest[0].Success == nil || *newest[0].Success {
		return nil
	}
	var report struct {
		Reports []struct {
			Name string `json:"name"`
			Out  string `json:"outstream"`
			Err  string `json:"errstream"`
		} `json:"reports"`
	}
	if err := s.client.Call(ctx, http.MethodGet, "/api/v2/compilereport/"+newest[0].ID, env, nil, &report); err != nil || len(report.Reports) == 0 {
		return fmt.Errorf("%s: the compile failed", s.Name)
	}
	last := report.Reports[len(report.Reports)-1]
	return fmt.Errorf("%s: the compile failed in %q:\n%s%s", s.Name, last.Name, last.Out, last.Err)
}

// resource is what is read of one resource.
type resource struct {
	Status     string            `json:"status"`
	Attributes map[string]any    `json:"attributes"`
	LastDeploy *string           `json:"last_deploy"`
	Requires   map[string]string `json:"requires_status"`
}

// WaitDeployed waits until a resource is deployed with this value, by a
// deployment that ended after a time, and gives when it ended by the server's word.
func (s *Server) WaitDeployed(ctx context.Context, env, id, value string, after time.Time, every time.Duration) (time.Time, error) {
	path := "/api/v2/resource/" + url.PathEscape(id)
	for {
		var r resource
		err := s.client.Call(ctx, http.MethodGet, path, env, nil, &r)
		if err == nil && r.Status == "deployed" && r.Attributes["value"] == value && r.LastDeploy != nil {
			at, err := time.Parse("2006-01-02T15:04:05.999999Z07:00", *r.LastDeploy)
			if err != nil || at.After(after) {
				return at, err
			}
		}
		if failed := s.failure(ctx, env); failed != nil && ctx.Err() == nil {
			return time.Time{}, failed
		}
		if ctx.Err() != nil {
			return time.Time{}, fmt.Errorf("%s: %s is not deployed with %s: %s (%v)", s.Name, id, value, r.Status, err)
		}
		time.Sleep(every)
	}
}

// WaitAll waits until n resources are deployed.
func (s *Server) WaitAll(ctx context.Context, env string, n int) error {
	for {
		var rows []json.RawMessage
		err := s.client.Call(ctx, http.MethodGet, "/api/v2/resource?limit=1000&filter.status=deployed", env, nil, &rows)
		if err == nil && len(rows) >= n {
			return nil
		}
		if failed := s.failure(ctx, env); failed != nil && ctx.Err() == nil {
			return failed
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %d of %d resources are deployed (%v)", s.Name, len(rows), n, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Memory gives resident bytes: of the server process, and of all its
// descendants together with it, databases left out.
func (s *Server) Memory() (server, all int64, err error) {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	server = rss(s.cmd.Process.Pid)
	var walk func(pid int)
	walk = func(pid int) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.HasPrefix(string(name), "postgres") {
			return
		}
		all += rss(pid)
		for _, child := range children[pid] {
			walk(child)
		}
	}
	walk(s.cmd.Process.Pid)
	return server, all, nil
}

// rss is the resident memory of a process in bytes.
func rss(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// freePort asks the kernel for a port on loopback.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
