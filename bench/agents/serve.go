package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/agent/authority"
	"ordain.dev/ordain/server/agent/gateway"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/store"
)

// serve is the child: an agent server, and the owner of the environment.
func serve(ctx context.Context, o options) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	records, err := store.Open(ctx, store.Config{URL: o.url, Logger: log})
	if err != nil {
		return err
	}
	defer records.Close()
	key, err := secret.OpenKey(filepath.Join(o.dir, "key"))
	if err != nil {
		return err
	}
	w := &owner{env: uuid.MustParse(o.env), bus: &bus.Bus{}, options: o}
	project := intent.Project{ID: uuid.New(), Name: "bench"}
	if err := records.CreateProject(ctx, project); err != nil {
		return err
	}
	if err := records.CreateEnvironment(ctx, intent.Environment{
		ID: w.env, ProjectID: project.ID, Name: "bench",
	}, nil); err != nil {
		return err
	}
	if w.record, err = record.New(record.Config{Store: records, Key: key, Bus: w.bus}); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := "https://" + l.Addr().String()
	office, err := authority.New(ctx, authority.Config{
		Store: records, Key: key, Bus: w.bus, Logger: log, URL: func() string { return address },
	})
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{
		Authority: office, Record: w.record, Store: records, Bus: w.bus, Logger: log, Version: "bench", Listener: l,
		Hosts: []string{"127.0.0.1"},
	})
	if err != nil {
		return err
	}
	if err := g.Start(ctx); err != nil {
		return err
	}
	defer g.Stop()
	fmt.Println(address)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		what, text, _ := strings.Cut(in.Text(), " ")
		while, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		fmt.Printf("%s for %s: %s\n", what, while, usage(g))
		if what == "idle" {
			wait(ctx, while)
		} else if err := w.load(ctx, while); err != nil {
			return err
		}
		fmt.Printf("  afterwards: %s\n.\n", usage(g))
	}
	return nil
}

func wait(ctx context.Context, while time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(while):
	}
}

// usage says what the process takes.
func usage(g *gateway.Gateway) string {
	var resident string
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.SplitSeq(string(status), "\n") {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			resident = strings.TrimSpace(kb)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("%d agents, resident %s, heap in use %d MB, stacks %d MB, goroutines %d", g.Agents(), resident,
		m.HeapInuse>>20, m.StackInuse>>20, runtime.NumGoroutine())
}

// owner puts commands and waits for their answers, as the deployer of an environment does.
type owner struct {
	options
	env    intent.EnvironmentID
	bus    *bus.Bus
	record *record.Record

	mu   sync.Mutex
	sent map[string]time.Time
}

func (w *owner) load(ctx context.Context, while time.Duration) error {
	w.sent = map[string]time.Time{}
	var trips []time.Duration
	var finished []uuid.UUID
	answered := w.bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Answered })
	defer answered.Close()
	done := make(chan struct{})
	lagged := 0
	go func() {
		defer close(done)
		for e := range answered.Events() {
			if e.Topic == bus.Lagged {
				lagged++
				continue
			}
			w.mu.Lock()
			if began, ok := w.sent[e.ID]; ok {
				trips = append(trips, time.Since(began))
				delete(w.sent, e.ID)
				finished = append(finished, uuid.MustParse(e.ID))
			}
			w.mu.Unlock()
		}
	}()
	put := func() error {
		m := deploy(nameOf(rand.IntN(w.agents)))
		agent := strings.TrimSuffix(strings.TrimPrefix(m.Payload.Task.Resource.ID, "fs::File["), ",path=/etc/motd]")
		w.mu.Lock()
		w.sent[m.ID] = time.Now()
		w.mu.Unlock()
		return w.record.Put(ctx, w.env, agent, "", m)
	}
	var failed error
	var all sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(w.rate))
	end := time.After(while)
	var once sync.Once
	places := make(chan struct{}, 64)
	count := 0
loop:
	for {
		select {
		case <-tick.C:
			count++
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				if err := put(); err != nil {
					once.Do(func() { failed = err })
				}
			})
			if count%500 == 0 {
				w.mu.Lock()
				ids := finished
				finished = nil
				w.mu.Unlock()
				all.Go(func() {
					if err := w.record.Finish(ctx, w.env, ids...); err != nil {
						once.Do(func() { failed = err })
					}
				})
			}
		case <-end:
			break loop
		case <-ctx.Done():
			break loop
		}
	}
	tick.Stop()
	all.Wait()
	for range 100 { // the last ones
		w.mu.Lock()
		left := len(w.sent)
		w.mu.Unlock()
		if left == 0 {
			break
		}
		wait(ctx, 100*time.Millisecond)
	}
	answered.Close()
	<-done
	fmt.Printf("  commands: %d put (%d/s), %d answered, round trip p50 %s, p99 %s, longest %s; events lost %d\n", count,
		count*int(time.Second)/int(while), len(trips), percentile(trips, 50), percentile(trips, 99),
		percentile(trips, 100), lagged)
	return failed
}
