package store_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/locks"
	"ordain.dev/ordain/server/store/postgres"
	"ordain.dev/ordain/server/store/storetest"
)

// ownCluster runs a PostgreSQL that the test may kill.
func ownCluster(t *testing.T) (*postgres.Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ordain-outage-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o711))
	data := filepath.Join(dir, "data")
	pg, err := postgres.Start(t.Context(), postgres.Config{
		DataDir: data, SocketDir: filepath.Join(dir, "s"), CacheDir: filepath.Join(dir, "cache"),
		Throwaway: true, Settings: map[string]string{"synchronous_commit": "on"}, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() { must(t, pg.Stop(context.Background())) })
	return pg, data
}

// PostgreSQL is killed under the store and comes back. Meanwhile calls fail as unavailable, owners learn that they
// lost their environments, and afterwards everything works without a new store.
func TestDatabaseGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	pg, data := ownCluster(t)
	s, err := store.Open(t.Context(), store.Config{URL: pg.URL(), Logger: storetest.Logger(t)})
	must(t, err)
	defer s.Close()
	ctx := t.Context()
	env, other := newEnvironment(t, s), newEnvironment(t, s)
	var losses []<-chan struct{}
	for _, id := range []intent.EnvironmentID{env, other} {
		held, err := s.Own(ctx, id)
		must(t, err)
		if held == nil {
			t.Fatal("nobody else owns it")
		}
		losses = append(losses, held.Lost())
	}
	for range 3 {
		ended := pg.Done()
		pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		must(t, err)
		first, _, _ := strings.Cut(string(pid), "\n")
		n, err := strconv.Atoi(first)
		must(t, err)
		must(t, syscall.Kill(n, syscall.SIGKILL))
		<-ended
		for _, lost := range losses {
			<-lost
		}
		want(t, s.SetHalted(ctx, env, true, intent.Actor{By: "test", At: time.Now()}), fault.Unavailable)
		want(t, s.Ping(ctx), fault.Unavailable)
		_, err = s.Own(ctx, env)
		want(t, err, fault.Unavailable)
		must(t, pg.Restart(ctx))
		must(t, s.SetHalted(ctx, env, true, intent.Actor{By: "test", At: time.Now()}))
		must(t, s.Ping(ctx))
		held, err := s.Own(ctx, env)
		must(t, err)
		if held == nil {
			t.Fatal("the lock survived its connection")
		}
		losses = []<-chan struct{}{held.Lost()}
	}
	select {
	case <-losses[0]:
		t.Error("lost without a reason")
	default:
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	want(t, s.Ping(cancelled), fault.Unavailable)
}

// An environment has one owner; it can be given back and taken by another.
func TestEnvironmentHasOneOwner(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	var servers []*store.Store
	for range 2 {
		s, err := store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)})
		must(t, err)
		defer s.Close()
		servers = append(servers, s)
	}
	a, b, ctx := servers[0], servers[1], t.Context()
	one, two := uuid.New(), uuid.New()
	own := func(s *store.Store, id uuid.UUID, expected bool) *locks.Held {
		t.Helper()
		held, err := s.Own(ctx, id)
		must(t, err)
		if (held != nil) != expected {
			t.Fatalf("own: %v, want %v", held != nil, expected)
		}
		return held
	}
	first := own(a, one, true)
	own(a, one, false)
	own(b, one, false)
	own(b, two, true)
	first.Release()
	second := own(b, one, true)
	first.Release() // a second time: it is not ours any more, nothing happens
	own(a, one, false)
	second.Release()
	own(a, one, true)
	b.Close()
	own(a, two, true)
	select {
	case <-first.Lost():
		t.Error("given back is not lost")
	default:
	}
	_, err := b.Own(ctx, two)
	want(t, err, fault.Unavailable)
}
