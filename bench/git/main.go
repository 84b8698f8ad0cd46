// Command git measures gitsync on a large repository, which it makes with git
// fast-import: how long a first fetch takes, how long it takes from a push to the
// checkout, how many fetches 50 environments need for one push, and how much memory
// all of this uses.
//
//	go run ./bench/git -commits 100000 -files 20000
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ordain.dev/ordain/gitsync"
)

func main() {
	commits := flag.Int("commits", 100_000, "commits in the repository")
	files := flag.Int("files", 20_000, "files in the repository")
	pushes := flag.Int("pushes", 9, "pushes that are timed")
	depth := flag.Int("depth", 1, "depth of the fetches; 0 for the whole history")
	profile := flag.String("cpuprofile", "", "file for a CPU profile of the pushes")
	flag.Parse()
	if err := run(*commits, *files, *pushes, *depth, *profile); err != nil {
		log.Fatal(err)
	}
}

func run(commits, files, pushes, depth int, profile string) error {
	dir, err := os.MkdirTemp("", "ordain-bench-git-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bare := filepath.Join(dir, "origin.git")
	if err := makeRepository(bare, commits, files); err != nil {
		return err
	}
	var fetches atomic.Int64
	server, err := serve(dir, &fetches)
	if err != nil {
		return err
	}
	defer server.Close()
	syncer, err := gitsync.New(
		gitsync.Config{Mirrors: filepath.Join(dir, "mirrors"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	src := gitsync.Source{URL: server.URL + "/origin.git", Branch: "main", Depth: depth}
	ctx := context.Background()

	start := time.Now()
	rev, _, err := syncer.Fetch(ctx, src)
	if err != nil {
		return err
	}
	fmt.Printf("first fetch, depth %d: %v\n", depth, time.Since(start).Round(time.Millisecond))
	checkout := filepath.Join(dir, "checkout")
	start = time.Now()
	if _, err := syncer.Checkout(ctx, src, rev.Commit, checkout); err != nil {
		return err
	}
	fmt.Printf("first checkout: %v\n", time.Since(start).Round(time.Millisecond))

	if profile != "" {
		out, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var whole, fetching []time.Duration
	busy := cpu()
	for n := range pushes {
		if err := push(bare, commits+n, files); err != nil {
			return err
		}
		start := time.Now()
		rev, _, err := syncer.Fetch(ctx, src)
		if err != nil {
			return err
		}
		fetching = append(fetching, time.Since(start))
		if _, err := syncer.Checkout(ctx, src, rev.Commit, checkout); err != nil {
			return err
		}
		whole = append(whole, time.Since(start))
	}
	fmt.Printf("push to checkout, warm: median %v (%v to %v), of which the fetch %v\n", median(whole),
		slices.Min(whole), slices.Max(whole), median(fetching))
	fmt.Printf("CPU of this process, per push: %v\n", ((cpu() - busy) / time.Duration(pushes)).Round(time.Millisecond))
	if err := push(bare, commits+pushes, files); err != nil {
		return err
	}
	fetches.Store(0)
	var all sync.WaitGroup
	failed := make(chan error, 50)
	start = time.Now()
	for range 50 {
		all.Go(func() {
			if _, _, err := syncer.Fetch(ctx, src); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	fmt.Printf("50 environments at once: %d transfers of objects in %v\n", fetches.Load(),
		time.Since(start).Round(time.Millisecond))
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") {
			fmt.Println("most memory of the process:", strings.TrimSpace(strings.TrimPrefix(line, "VmHWM:")))
		}
	}
	return nil
}

// cpu returns the processor time of this process, without that of git.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2].Round(time.Millisecond)
}

// makeRepository writes all files in the first commit, and changes one file in each other commit.
func makeRepository(bare string, commits, files int) error {
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", bare).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	return feed(bare, func(w *bufio.Writer) {
		for n := range commits {
			commit(w, n)
			if n > 0 {
				change(w, n*7919%files, n)
				continue
			}
			for f := range files {
				change(w, f, 0)
			}
		}
	})
}

// push adds a commit that changes one file. Commits must get younger: for one that is
// older than its parent, a Git server searches the whole history.
func push(bare string, n, files int) error {
	return feed(bare, func(w *bufio.Writer) {
		commit(w, n)
		fmt.Fprint(w, "from refs/heads/main^0\n")
		change(w, n%files, 1_000_000+n)
	})
}

func commit(w *bufio.Writer, n int) {
	message := fmt.Sprintf("change %d", n)
	fmt.Fprintf(w, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\n",
		1_700_000_000+n, len(message), message)
}

func change(w *bufio.Writer, file, n int) {
	text := fmt.Sprintf("entity E%d: end\n# %d\n", file, n)
	fmt.Fprintf(w, "M 100644 inline d%d/e%d/f%d.cf\ndata %d\n%s\n", file%100, file/100%10, file, len(text), text)
}

// feed runs git fast-import.
func feed(bare string, write func(*bufio.Writer)) error {
	cmd := exec.Command("git", "-C", bare, "fast-import", "--quiet", "--force")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	w := bufio.NewWriter(in)
	write(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	return cmd.Wait()
}

// serve serves the repositories of a folder through git http-backend, and counts how
// often objects are requested.
func serve(dir string, fetches *atomic.Int64) (*httptest.Server, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path: path,
		Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fetches.Add(1)
		}
		backend.ServeHTTP(w, r)
	})), nil
}
