// Command estate measures a server that has very many environments and nothing to do:
//
//	go run ./bench/estate                       # 1,000 environments, three minutes
//	go run ./bench/estate -environments 100 -for 1m
//	go run ./bench/estate -local                # repositories in a folder of this machine
//
// Each environment follows a repository of its own on a Git server that answers for all
// of them, and counts: it is asked by each environment once in a poll interval. (There is
// no project in them, so each environment has one compile, which fails at once.) The
// command prints the memory of the server, the processor time that it uses, and the
// longest time that an environment was not polled. (With -local nobody counts the polls.)
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"ordain.dev/ordain/bench/peer"
)

func main() {
	environments := flag.Int("environments", 1000, "environments")
	interval := flag.Duration("interval", time.Minute, "poll interval of each")
	watch := flag.Duration("for", 3*time.Minute, "how long to watch")
	local := flag.Bool("local", false, "repositories in a folder instead of a Git server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *environments, *interval, *watch, *local); err != nil {
		fmt.Fprintln(os.Stderr, "estate:", err)
		os.Exit(1)
	}
}

// forge is a Git server with the same small repository at every path.
type forge struct {
	bare    string
	backend http.Handler // git http-backend
	refs    []byte       // what it advertises
	mu      sync.Mutex
	asked   map[string]time.Time // when each path was asked for last
	worst   time.Duration
	polls   int
}

// newForge makes the repository.
func newForge(ctx context.Context, dir string) (*forge, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	work, bare := filepath.Join(dir, "work"), filepath.Join(dir, "bare.git")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", work},
		{"-C", work, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "one", "--allow-empty"},
		{"clone", "-q", "--bare", work, bare},
	} {
		if out, err := exec.CommandContext(ctx, git, args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("git %v: %w\n%s", args, err, out)
		}
	}
	f := &forge{bare: bare, asked: map[string]time.Time{}, backend: &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/bare.git/info/refs?service=git-upload-pack", nil)
	if err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	f.backend.ServeHTTP(answer, r)
	f.refs = answer.Body.Bytes()
	return f, nil
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		r.URL.Path = "/bare.git/git-upload-pack"
		f.backend.ServeHTTP(w, r)
		return
	}
	now := time.Now()
	f.mu.Lock()
	f.polls++
	if last, before := f.asked[r.URL.Path]; before {
		f.worst = max(f.worst, now.Sub(last))
	}
	f.asked[r.URL.Path] = now
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	_, _ = w.Write(f.refs) // the server tries again when it is gone
}

// begin forgets what was counted, so that only what follows counts.
func (f *forge) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.worst, f.polls = 0, 0
}

// late returns the longest time between two polls of an environment, also of those that were not polled again.
func (f *forge) late() (worst time.Duration, paths, polls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	worst = f.worst
	for _, last := range f.asked {
		worst = max(worst, time.Since(last))
	}
	return worst, len(f.asked), f.polls
}

func run(ctx context.Context, environments int, interval, watch time.Duration, local bool) error {
	dir, err := peer.Directory()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := peer.Build(ctx, dir)
	if err != nil {
		return err
	}
	f, err := newForge(ctx, filepath.Join(dir, "forge"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	git := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func() { _ = git.Serve(listener) }()
	defer git.Close()
	s, err := peer.StartOrdain(ctx, binary, dir, "")
	if err != nil {
		return err
	}
	defer s.Stop()
	began := time.Now()
	for n := range environments {
		url := fmt.Sprintf("http://%s/%d.git", listener.Addr(), n)
		if local {
			url = filepath.Join(dir, "local", fmt.Sprint(n)+".git")
			if err := os.CopyFS(url, os.DirFS(f.bare)); err != nil {
				return err
			}
		}
		env, err := s.Bind(ctx, url, "main")
		if err != nil {
			return err
		}
		if err := s.Set(ctx, env, "git_poll_interval", int(interval.Seconds())); err != nil {
			return err
		}
	}
	fmt.Printf("%d environments made in %s\n", environments, time.Since(began).Round(100*time.Millisecond))
	// Until all had their compile.
	if err := peer.Wait(ctx, interval+time.Duration(environments)*50*time.Millisecond); err != nil {
		return err
	}
	f.begin()
	before, err := s.CPU()
	if err != nil {
		return err
	}
	if err := peer.Wait(ctx, watch); err != nil {
		return err
	}
	after, err := s.CPU()
	if err != nil {
		return err
	}
	server, all, err := s.Memory()
	if err != nil {
		return err
	}
	worst, paths, polls := f.late()
	fmt.Printf("memory: server %d MiB, with its children but the database %d MiB\n", server>>20, all>>20)
	fmt.Printf("processor: %.1f %% of one\n", 100*(after["ordain"]-before["ordain"]).Seconds()/watch.Seconds())
	if local {
		return nil
	}
	fmt.Printf("polls: %d of %d repositories in %s; longest time without one: %s of an interval of %s\n",
		polls, paths, watch, worst.Round(10*time.Millisecond), interval)
	return nil
}
