// Command hooks sends a burst of webhooks to the real server, with a real
// repository behind it, and measures how long each answer takes and how many compiles
// the burst leads to.
//
//	go run ./bench/hooks -hooks 1000 -connections 16
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ordain.dev/ordain/bench/peer"
	"ordain.dev/ordain/webhooks"
)

type options struct {
	hooks, connections, bytes, rounds int
	binary                            string
}

func main() {
	var o options
	flag.IntVar(&o.hooks, "hooks", 1000, "webhooks in a burst")
	flag.IntVar(&o.connections, "connections", 16, "connections that send them, each one after another")
	flag.IntVar(&o.bytes, "bytes", 8000, "bytes of a payload")
	flag.IntVar(&o.rounds, "rounds", 3, "bursts, each after a push")
	flag.StringVar(&o.binary, "binary", "", "the program to measure, to compare two; it is built when empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "hooks:", err)
		os.Exit(1)
	}
}

const (
	secret = "a secret of the benchmark"
	items  = 10 // resources of the model
)

// target is the server that gets the webhooks, with its one environment.
type target struct {
	*peer.Server
	url, env, bare string
	client         *http.Client
}

func run(ctx context.Context, o options) error {
	dir, err := peer.Directory()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.binary == "" {
		if o.binary, err = peer.Build(ctx, dir); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o755); err != nil {
		return err
	}
	server, err := peer.StartOrdain(ctx, o.binary, filepath.Join(dir, "state"), "")
	if err != nil {
		return err
	}
	defer server.Stop()
	repo, err := peer.NewRepository(ctx, filepath.Join(dir, "repo"), peer.Model{Items: items, Agents: 1})
	if err != nil {
		return err
	}
	s := &target{Server: server, url: server.URL(), bare: repo.Bare, client: &http.Client{}}
	if s.env, err = server.Bind(ctx, repo.Bare, "main"); err != nil {
		return err
	}
	if err := server.Secret(ctx, s.env, "webhook", secret); err != nil {
		return err
	}
	version, err := server.WaitVersion(ctx, s.env, 0)
	if err != nil {
		return err
	}
	if err := server.WaitDeployedCount(ctx, s.env, items); err != nil {
		return err
	}
	fmt.Printf(
		"%d webhooks of %d bytes over %d connections\n\n"+
			"| burst | all | median | 99th | slowest | versions | CPU per webhook |\n|---|---|---|---|---|---|---|\n",
		o.hooks,
		o.bytes,
		o.connections,
	)
	for round := range o.rounds {
		if err := repo.Change(ctx, round); err != nil {
			return err
		}
		if err := repo.Push(ctx); err != nil {
			return err
		}
		before, err := s.CPU()
		if err != nil {
			return err
		}
		began := time.Now()
		times, err := s.burst(ctx, o, round)
		if err != nil {
			return err
		}
		all := time.Since(began)
		busy, err := s.CPU()
		if err != nil {
			return err
		}
		after, err := s.settled(ctx, version)
		if err != nil {
			return err
		}
		slices.Sort(times)
		fmt.Printf("| %d | %s | %s | %s | %s | %d | %s |\n", round+1, ms(all), ms(times[len(times)/2]),
			ms(times[len(times)*99/100]), ms(times[len(times)-1]), after-version, spent(before, busy, o.hooks))
		version = after
	}
	return nil
}

// spent returns the processor time that each program used during a burst, per webhook.
func spent(before, after map[string]time.Duration, hooks int) string {
	var programs []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if took := (after[name] - before[name]) / time.Duration(hooks); took > 0 {
			programs = append(programs, name+" "+took.Round(time.Microsecond).String())
		}
	}
	return strings.Join(programs, ", ")
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// burst sends all webhooks as fast as the connections allow and returns how long each answer took.
func (s *target) burst(ctx context.Context, o options, round int) ([]time.Duration, error) {
	body, err := json.Marshal(map[string]any{
		"ref": "refs/heads/main", "after": strings.Repeat("1", 40), "padding": strings.Repeat("x", o.bytes),
		"repository": map[string]any{"full_name": "bench", "clone_url": "file://" + s.bare},
	})
	if err != nil {
		return nil, err
	}
	senders := make([]*sender, o.connections)
	for i := range senders {
		if senders[i], err = connect(ctx, strings.TrimPrefix(s.url, "http://"), body); err != nil {
			return nil, err
		}
		defer senders[i].conn.Close()
	}
	times := make([]time.Duration, o.hooks)
	var next atomic.Int64
	var failed atomic.Value
	var wg sync.WaitGroup
	for _, from := range senders {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= o.hooks {
					return
				}
				began := time.Now()
				if err := from.send(fmt.Sprintf("%d-%d", round, i)); err != nil {
					failed.Store(err)
					return
				}
				times[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	err, _ = failed.Load().(error)
	return times, err
}

// sender is a connection of a forge. It writes requests by hand, because it shares the
// processors with the server, and net/http's client would use as much of them.
type sender struct {
	conn       net.Conn
	answers    *bufio.Reader
	head, tail []byte // of a request, around the id of its delivery
	request    []byte
}

func connect(ctx context.Context, address string, body []byte) (*sender, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(
		"POST /hooks/github HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
			"X-GitHub-Event: push\r\n%s: %s\r\nX-GitHub-Delivery: ",
		address,
		len(body),
		webhooks.HeaderSignature,
		webhooks.Sign(body, []byte(secret)),
	)
	return &sender{
		conn:    conn,
		answers: bufio.NewReader(conn),
		head:    []byte(head),
		tail:    append([]byte("\r\n\r\n"), body...),
	}, nil
}

func (s *sender) send(delivery string) error {
	s.request = append(append(append(s.request[:0], s.head...), delivery...), s.tail...)
	if _, err := s.conn.Write(s.request); err != nil {
		return err
	}
	const accepted, length = "HTTP/1.1 202 ", "Content-Length: "
	status, size := "", 0
	for {
		line, err := s.answers.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch text := strings.TrimSpace(string(line)); {
		case status == "":
			status = text
		case strings.HasPrefix(text, length):
			if size, err = strconv.Atoi(text[len(length):]); err != nil {
				return err
			}
		case text == "":
			if _, err := s.answers.Discard(size); err != nil || !strings.HasPrefix(status, accepted) {
				return fmt.Errorf("answered %q: %w", status, err)
			}
			return nil
		}
	}
}

// settled waits until the server has acted on every webhook and compiles nothing. It returns the newest version.
func (s *target) settled(ctx context.Context, above int) (int, error) {
	version, err := s.WaitVersion(ctx, s.env, above)
	if err != nil {
		return 0, err
	}
	for {
		var waiting []struct{}
		if err := s.get(ctx, "/api/v2/deliveries?limit=1&filter.state=waiting", &waiting); err != nil {
			return 0, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, s.url+"/api/v1/notify/"+s.env, nil)
		if err != nil {
			return 0, err
		}
		res, err := s.client.Do(req)
		if err != nil {
			return 0, err
		}
		_ = res.Body.Close()
		if len(waiting) == 0 && res.StatusCode == http.StatusNoContent {
			break
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if newer, err := s.newest(ctx); err == nil {
		version = max(version, newer)
	}
	return version, nil
}

func (s *target) newest(ctx context.Context) (int, error) {
	var versions []struct{ Version int }
	if err := s.get(ctx, "/api/v2/desiredstate?limit=1&sort=version.desc", &versions); err != nil ||
		len(versions) == 0 {
		return 0, err
	}
	return versions[0].Version, nil
}

func (s *target) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Inmanta-tid", s.env)
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(&struct{ Data any }{into})
}
