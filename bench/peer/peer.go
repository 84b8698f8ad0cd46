// Package peer starts the servers that benchmarks measure, Ordain and the
// reference, each with a database of its own, and speaks the REST API that both
// of them answer.
package peer

import (
	"context"
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

	"ordain.dev/ordain/api/client"
)

// Server is a running server. Its methods are for one goroutine.
type Server struct {
	Name   string
	client *client.Client
	url    string
	cmd    *exec.Cmd
	stop   []func()

	project struct {
		ID string `json:"id"`
	}
	bound int // environments made so far
}

// start starts the server's command in a process group of its own and writes its output to a file.
func (s *Server) start(dir string, env []string, name string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(dir, s.Name+".out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
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

// PID returns the id of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill kills the server's own process and nothing else.
func (s *Server) Kill() {
	s.stop = nil
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Pause stops the server's own process without ending it; Resume lets it go on.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// waitReady waits until the server answers at a path.
func (s *Server) waitReady(ctx context.Context, port int, path string) error {
	var err error
	s.url = "http://127.0.0.1:" + strconv.Itoa(port)
	if s.client, err = client.New(s.url); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := answers(ctx, s.url+path)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not answer: %w", s.Name, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// answers reports whether a GET is answered with 200.
func answers(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}

// Call sends a request to the API, about env unless that is empty.
func (s *Server) Call(ctx context.Context, method, path, env string, body, into any) error {
	return s.client.Call(ctx, method, path, env, body, into)
}

// Bind makes an environment that follows a branch of a repository, and returns its id.
func (s *Server) Bind(ctx context.Context, repo, branch string) (string, error) {
	var env struct {
		ID string `json:"id"`
	}
	if s.project.ID == "" {
		body := map[string]any{"name": "bench"}
		if err := s.client.Call(ctx, http.MethodPut, "/api/v2/project", "", body, &s.project); err != nil {
			return "", err
		}
	}
	s.bound++
	err := s.client.Call(ctx, http.MethodPut, "/api/v2/environment", "", map[string]any{
		"project_id": s.project.ID, "name": "bench-" + strconv.Itoa(s.bound), "repository": repo, "branch": branch,
	}, &env)
	return env.ID, err
}

// Trigger asks the server to fetch and compile now.
func (s *Server) Trigger(ctx context.Context, env string) error {
	return s.client.Call(ctx, http.MethodPost, "/api/v1/notify/"+env, "", map[string]any{"update": true}, nil)
}

// Set sets an environment setting.
func (s *Server) Set(ctx context.Context, env, name string, value any) error {
	body := map[string]any{"value": value}
	return s.client.Call(ctx, http.MethodPost, "/api/v2/environment_settings/"+name, env, body, nil)
}

// Project returns the id of the project in which Bind makes environments.
func (s *Server) Project() string { return s.project.ID }

// URL returns the server's address.
func (s *Server) URL() string { return s.url }

// Secret sets a secret of an environment.
func (s *Server) Secret(ctx context.Context, env, name, value string) error {
	body := map[string]any{"value": value}
	return s.client.Call(ctx, http.MethodPut, "/api/v2/environment/"+env+"/secret/"+name, env, body, nil)
}

// Remove deletes an environment. It only makes room, so an error does not matter.
func (s *Server) Remove(ctx context.Context, env string) {
	_ = s.client.Call(ctx, http.MethodDelete, "/api/v2/environment/"+env, "", nil, nil)
}

// WaitVersion waits for a version newer than above and returns its number.
func (s *Server) WaitVersion(ctx context.Context, env string, above int) (int, error) {
	for {
		var newest []struct {
			Version int `json:"version"`
		}
		err := s.client.Call(ctx, http.MethodGet, "/api/v2/desiredstate?limit=1", env, nil, &newest)
		if err == nil && len(newest) > 0 && newest[0].Version > above {
			return newest[0].Version, nil
		}
		if failed := s.failure(ctx, env); failed != nil && ctx.Err() == nil {
			return 0, failed
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%s: no version after %d (%v)", s.Name, above, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Deploy asks the server to deploy every resource that differs from the intent, as a person would.
func (s *Server) Deploy(ctx context.Context, env string) error {
	body := map[string]any{"agent_trigger_method": "push_incremental_deploy"}
	return s.client.Call(ctx, http.MethodPost, "/api/v1/deploy", env, body, nil)
}

// Release makes a version the intent and deploys what it changed.
func (s *Server) Release(ctx context.Context, env string, version int) error {
	return s.client.Call(ctx, http.MethodPost, "/api/v1/version/"+strconv.Itoa(version), env,
		map[string]any{"push": true, "agent_trigger_method": "push_incremental_deploy"}, nil)
}

// WaitDeployedCount waits until at least n resources are deployed.
func (s *Server) WaitDeployedCount(ctx context.Context, env string, n int) error {
	for {
		var m struct {
			Summary struct {
				ByState map[string]int `json:"by_state"`
			} `json:"deploy_summary"`
		}
		err := s.client.Metadata(ctx, "/api/v2/resource?limit=1&deploy_summary=true", env, &m)
		if err == nil && m.Summary.ByState["deployed"] >= n {
			return nil
		}
		if failed := s.failure(ctx, env); failed != nil && ctx.Err() == nil {
			return failed
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: not all of %d are deployed: %v (%v)", s.Name, n, m.Summary.ByState, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// failure returns an error when the newest compile failed, and nil when it succeeded or is still running.
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
	err = s.client.Call(ctx, http.MethodGet, "/api/v2/compilereport/"+newest[0].ID, env, nil, &report)
	if err != nil || len(report.Reports) == 0 {
		return fmt.Errorf("%s: the compile failed", s.Name)
	}
	last := report.Reports[len(report.Reports)-1]
	return fmt.Errorf("%s: the compile failed in %q:\n%s%s", s.Name, last.Name, last.Out, last.Err)
}

// resource holds the fields that benchmarks read of a resource.
type resource struct {
	Status     string         `json:"status"`
	Attributes map[string]any `json:"attributes"`
	LastDeploy *string        `json:"last_deploy"`
}

// WaitDeployed waits until a resource has this value and was deployed later than
// after. It returns the end of that deployment, as the server recorded it.
func (s *Server) WaitDeployed(
	ctx context.Context,
	env, id, value string,
	after time.Time,
	every time.Duration,
) (time.Time, error) {
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

// Memory returns the resident bytes of the server process alone, and those of
// the server and all its descendants without the database.
func (s *Server) Memory() (server, all int64, err error) {
	children, err := childrenByParent()
	if err != nil {
		return 0, 0, err
	}
	server = rss(s.cmd.Process.Pid)
	descend(children, s.cmd.Process.Pid, func(pid int, name string) {
		if !strings.HasPrefix(name, "postgres") {
			all += rss(pid)
		}
	})
	return server, all, nil
}

// CPU returns the processor time that the server and its descendants have used
// so far, by program name. A database that the server did not start itself is
// not included.
func (s *Server) CPU() (map[string]time.Duration, error) {
	children, err := childrenByParent()
	if err != nil {
		return nil, err
	}
	used := map[string]time.Duration{}
	descend(children, s.cmd.Process.Pid, func(pid int, name string) {
		const tick = 10 * time.Millisecond // USER_HZ
		if fields := stat(pid); fields != nil {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			used[name] += time.Duration(user+system) * tick
		}
	})
	return used, nil
}

// childrenByParent lists the children of every process.
func childrenByParent() (map[int][]int, error) {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := stat(pid); fields != nil {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	return children, nil
}

// stat returns the fields of /proc/PID/stat after the name, or nil when the process is gone.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// descend visits a process and all its descendants.
func descend(children map[int][]int, pid int, visit func(pid int, name string)) {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	visit(pid, strings.TrimSpace(string(name)))
	for _, child := range children[pid] {
		descend(children, child, visit)
	}
}

// rss returns the resident memory of a process in bytes.
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

// FreePort returns a free port of the loopback address.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Children lists the processes that a process has started.
func Children(pid int) []int {
	all, err := childrenByParent()
	if err != nil {
		return nil
	}
	return all[pid]
}

// Descendants lists all descendants of a process.
func Descendants(pid int) (out []int) {
	all, err := childrenByParent()
	if err != nil {
		return nil
	}
	descend(all, pid, func(p int, _ string) {
		if p != pid {
			out = append(out, p)
		}
	})
	return out
}

// Parent returns the parent of a process, or 0 when the process is gone.
func Parent(pid int) int {
	fields := stat(pid)
	if fields == nil {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// Wait waits, and returns the error of ctx if that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
