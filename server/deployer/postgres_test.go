package deployer

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
)

// PostgreSQL stops while a hundred resources are being deployed, and comes
// back. Nothing is lost, nothing that was recorded as deployed runs again.
func TestDatabaseRestarts(t *testing.T) {
	t.Parallel()
	server, cfg := ownDatabase(t)
	db := open(t, server)
	s := (&stage{t: t, rec: db, env: newEnvironment(t, db)}).ready()
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("a%d/r%02d 1", i%4, i))
	}
	gate := make(chan struct{})
	for i := 40; i < 44; i++ {
		s.exec.misbehave(fmt.Sprintf("a%d/r%02d", i%4, i), until(gate))
	}
	s.start()
	s.release(lines...)
	for i := 40; i < 44; i++ {
		s.exec.awaits(fmt.Sprintf("a%d/r%02d", i%4, i))
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(gate)
	again, err := postgres.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Stop(context.Background()) })
	s.wait()
	if got := s.exec.taken(); len(got) != 100 {
		t.Fatalf("%d runs of 100 resources", len(got))
	}
	for _, line := range lines {
		s.status(line[:6], intent.StatusDeployed)
	}
}

// ownDatabase starts a PostgreSQL for one test, with all its care for durability.
func ownDatabase(t testing.TB) (*postgres.Server, postgres.Config) {
	t.Helper()
	dir, err := os.MkdirTemp("", "deployer")
	if err == nil {
		err = os.Chmod(dir, 0o711) // for root's tests the database runs as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := postgres.Config{DataDir: filepath.Join(dir, "data"), SocketDir: filepath.Join(dir, "socket"),
		CacheDir: filepath.Join(dir, "cache"), Logger: slog.New(slog.DiscardHandler)}
	server, err := postgres.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	return server, cfg
}

func open(t testing.TB, server *postgres.Server) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: server.URL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// The server is killed again and again at random moments. In the end every
// resource is deployed, no entry of the log is open, and none was run again
// after the record had it as deployed.
func TestKilledAtRandom(t *testing.T) {
	onEach(t, func(t *testing.T, s *stage) {
		var lines []string
		for i := range 60 {
			line := fmt.Sprintf("a%d/r%02d 1", i%4, i)
			if i >= 7 {
				line += fmt.Sprintf(" a%d/r%02d", (i-7)%4, i-7)
			}
			lines = append(lines, line)
		}
		s.release(lines...)
		random := rand.New(rand.NewPCG(1, 2))
		for range 8 {
			s.start()
			d, quiet := s.d, make(chan struct{})
			go func() {
				_ = d.Wait(t.Context())
				close(quiet)
			}()
		moving:
			for range random.IntN(9) {
				select {
				case <-s.evts:
				case <-quiet:
					break moving
				}
			}
			s.d.kill()
			s.exec.active.Lock() // none runs any more
			for len(s.evts) > 0 {
				<-s.evts
			}
			s.exec.active.Unlock()
		}
		s.start()
		s.wait()
		for i := range lines {
			name := fmt.Sprintf("a%d/r%02d", i%4, i)
			s.status(name, intent.StatusDeployed)
			good := 0
			for _, a := range s.actions(name) {
				if a.Finished == nil {
					t.Errorf("%s has an open entry", name)
				}
				if a.Status == intent.StatusDeployed {
					good++
				}
			}
			if good != 1 {
				t.Errorf("%s was deployed %d times according to the record", name, good)
			}
		}
	})
}

// kill ends a deployer as SIGKILL would: nothing more is recorded.
func (d *Deployer) kill() {
	d.cancelRecords()
	d.cancelTasks()
	d.post(func() { d.beginStop(); d.abandoned = true })
	<-d.done
}

type idle struct{}

func (idle) Run(_ context.Context, t executor.Task) executor.Result {
	return executor.Result{
		Task:     t.ID,
		Resource: t.Resource.ID,
		Version:  t.Resource.Version,
		Status:   intent.StatusDeployed,
		Change:   intent.NoChange,
	}
}

func (i idle) Begin(ctx context.Context, tasks []executor.Task, done func(executor.Result)) {
	for _, t := range tasks {
		r := i.Run(ctx, t)
		r.Started = time.Now()
		done(r)
	}
}

func (idle) Recall([]intent.ActionID) {}

// BenchmarkDeploy: 1,000 resources that have nothing to do, on four agents,
// from release to all recorded as deployed.
func BenchmarkDeploy(b *testing.B) {
	for _, agents := range []int{4, 40} {
		b.Run(fmt.Sprint(agents, " agents"), func(b *testing.B) { benchmarkDeploy(b, agents) })
	}
}

func benchmarkDeploy(b *testing.B, agents int) {
	server, _ := ownDatabase(b)
	db := open(b, server)
	env := newEnvironment(b, db)
	d, err := New(Config{Environment: env, Store: db, Executor: idle{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	version := 0
	for b.Loop() {
		b.StopTimer()
		version++
		v := intent.NewVersion{Environment: env.ID}
		for i := range 1000 {
			v.Resources = append(v.Resources, resource(fmt.Sprintf("a%02d/r%03d %d", i%agents, i, version)))
		}
		number, err := db.StoreVersion(b.Context(), v, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		if err := db.ReleaseVersion(b.Context(), env.ID, number, time.Now()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		d.VersionReleased(number)
		if err := d.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		counts, err := db.ResourceCounts(b.Context(), env.ID)
		if err != nil || counts[intent.StatusDeployed] != 1000 {
			b.Fatalf("%v, %v", counts, err)
		}
		b.StartTimer()
	}
}
