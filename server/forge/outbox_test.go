package forge_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/forge/client"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asked notes which pull requests a forge is asked for.
type asked struct {
	client.Forge // what is not asked for

	mu    sync.Mutex
	t     *testing.T
	busy  map[string]bool
	log   map[string][]int
	begun map[string]time.Time
}

// of returns the forge of a repository.
func (a *asked) of(cfg client.Config) (client.Forge, error) {
	return askedOf{asked: a, url: cfg.URL}, nil
}

type askedOf struct {
	*asked

	url string
}

func (a askedOf) Pull(_ context.Context, number int) (client.Pull, error) {
	a.mu.Lock()
	if a.busy[a.url] {
		a.t.Errorf("two servers speak for %s at a time", a.url)
	}
	a.busy[a.url] = true
	a.mu.Unlock()
	time.Sleep(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy[a.url] = false
	if a.log[a.url] = append(a.log[a.url], number); len(a.log[a.url]) == 1 {
		a.begun[a.url] = time.Now()
	}
	if number == 3 && len(a.log[a.url]) < 5 {
		return client.Pull{}, fault.New("test", fault.Unavailable, "the forge is away")
	}
	return client.Pull{}, fault.New("test", fault.NotFound, "there is no such pull request")
}

type noKeepers struct{ forge.Keepers }

func (noKeepers) Owned() []intent.EnvironmentID { return nil }

// Two servers send what waits for the forges of two environments: each message once, those of an environment one after
// the other in their order, and one that fails again later, which keeps no other waiting. What a server of an older
// version queued is sent, too; what it is sending is left to it.
func TestTwoServersSendToForges(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	must(t, err)
	to := &asked{t: t, busy: map[string]bool{}, log: map[string][]int{}, begun: map[string]time.Time{}}
	var records *store.Store
	var envs []intent.EnvironmentID
	var leftTo time.Time // until then, an older server sends for the first environment
	for n := range 2 {
		s, err := store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)})
		must(t, err)
		t.Cleanup(s.Close)
		sources, events := source.NewOpener(s, key), &bus.Bus{}
		service := forge.NewService(forge.Config{
			Store: s, Bus: events, Logger: storetest.Logger(t), Sources: sources, Now: time.Now, Keepers: noKeepers{},
			Forges: &forge.Opener{Sources: sources, New: to.of},
		})
		e, err := process.New(process.Config{
			Record: s, Bus: events, Logger: storetest.Logger(t), Sweep: 50 * time.Millisecond,
			Definitions: []process.Definition{service.Process()},
		})
		must(t, err)
		if n == 0 {
			records, envs = s, twoEnvironments(t, s, sources)
			for number := 1; number <= 8; number++ {
				for _, env := range envs {
					must(t, s.AskForge(ctx, env, number, time.Now()))
					must(t, s.AskForge(ctx, env, number, time.Now())) // merged
				}
			}
			leftTo = oldServer(t, url, envs)
		}
		must(t, e.Start(ctx))
		t.Cleanup(e.Stop)
		must(t, service.Start(ctx))
		t.Cleanup(service.Stop)
	}
	deadline := time.Now().Add(20 * time.Second)
	for _, env := range envs {
		for done := false; !done; time.Sleep(10 * time.Millisecond) {
			all, err := records.Outbox(ctx, env, 100)
			must(t, err)
			done = !slices.ContainsFunc(all, func(w intent.Outbox) bool { return w.State == intent.OutboxWaiting })
			if time.Now().After(deadline) {
				t.Fatalf("waits: %+v", all)
			}
		}
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for url, want := range map[string]string{
		"https://git.test/0": "[1 2 3 4 5 6 7 8 3]", "https://git.test/1": "[1 2 3 4 5 6 7 8 20 3]",
	} {
		if got := fmt.Sprint(to.log[url]); got != want {
			t.Errorf("%s was asked for %s, want %s", url, got, want)
		}
	}
	if to.begun["https://git.test/0"].Before(leftTo) {
		t.Error("a message that an older server was sending was sent beside it")
	}
}

// twoEnvironments makes environments that have a forge.
func twoEnvironments(t *testing.T, s *store.Store, sources *source.Opener) (ids []intent.EnvironmentID) {
	t.Helper()
	p := intent.Project{ID: uuid.New(), Name: "p"}
	must(t, s.CreateProject(t.Context(), p))
	for n := range 2 {
		e := intent.Environment{
			ID: uuid.New(), ProjectID: p.ID, Name: fmt.Sprint("e", n),
			Source: intent.Source{URL: fmt.Sprint("https://git.test/", n), Branch: "main"},
		}
		must(t, s.CreateEnvironment(t.Context(), e, nil))
		sealed, err := sources.Seal(e.ID, source.SecretForgeToken, "x")
		must(t, err)
		must(t, s.SetSecret(t.Context(), e.ID, source.SecretForgeToken, sealed))
		ids = append(ids, e.ID)
	}
	return ids
}

// oldServer leaves a message that no process was scheduled for, and one that it has until the time that it returns.
func oldServer(t *testing.T, url string, envs []intent.EnvironmentID) time.Time {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	for _, sql := range []string{
		`INSERT INTO forge_outbox (environment, kind, topic, payload, created, next)
		 VALUES ('` + envs[1].String() + `', 'pull', 'pull/20', '{"number": 20}', now(), now())`,
		`UPDATE forge_outbox SET taken = now() + interval '1 second' WHERE topic = 'pull/1' AND environment = '` +
			envs[0].String() + `'`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		must(t, err)
	}
	must(t, conn.Close(t.Context()))
	return time.Now().Add(900 * time.Millisecond)
}
