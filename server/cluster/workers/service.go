package workers

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/store"
)

// Desk gives tasks to provisioners; *desk.Desk implements it.
type Desk interface {
	Handler(who func(*http.Request) (desk.Who, error)) http.Handler
}

// Store is the part of the record that says who has something to do; *store.Store implements it.
type Store interface {
	ClusterWork(ctx context.Context) ([]store.ClusterWork, error)
	Projects(ctx context.Context) ([]intent.Project, error)
	Replica() uuid.UUID
}

// Config has what a Service needs; Desk, Store, Layout, Bus, Program and Logger are required.
type Config struct {
	Desk   Desk
	Store  Store
	Layout *layout.Layout
	Bus    *bus.Bus
	Logger *slog.Logger

	// Program is the command line that runs ordain: its path, and maybe arguments before those of a command.
	Program []string
	// Plugins is the folder of further plug-ins. Empty: there are none.
	Plugins string
	// Environ are variables for provisioners besides PATH and the like.
	Environ []string
	// Read are further files and folders that provisioners may read, such as those of a Python interpreter.
	Read []string

	// Isolation says how executors are confined; of it, provisioners get what the kernel offers, the users, and the
	// folders to read, but not the restrictions of the network. nil: they are not confined.
	Isolation *isolation.Config
	// LastUser is the number of the user of the first project, in the range that begins with Isolation.FirstUser.
	// Further projects count down from it.
	LastUser int

	// Max is how many provisioners run at a time. 0: 8.
	Max int
	// Idle is how long one goes on without anything to do. 0: 5 minutes.
	Idle time.Duration
	// Turn is how long one goes on although other projects wait. 0: 1 minute.
	Turn time.Duration
	// Sweep is the time between two looks at the record; events make it look sooner. 0: 3 seconds.
	Sweep time.Duration
	// Silent is after which time without a request a provisioner counts as hanging: it asks for tasks or renews leases
	// at least every 30 seconds. 0: 2 minutes.
	Silent time.Duration
	// Pause is the wait before a provisioner is started again that crashed; it doubles up to PauseMax. 0: 1 second
	// and 2 minutes.
	Pause, PauseMax time.Duration
	// Steady is how long a provisioner has to run for its earlier crashes to be forgotten. 0: 5 minutes.
	Steady time.Duration

	Now func() time.Time // nil: time.Now
}

// Service runs provisioners while it runs. It is safe for concurrent use.
type Service struct {
	c       Config
	name    string // of the provisioners, for the desk
	users   *users
	running service.Runner

	mu       sync.Mutex
	projects map[uuid.UUID]*state
	looked   chan struct{} // closed after each look, for tests
}

// state is what the service knows of a project.
type state struct {
	project
	child    *child
	failures int
	problem  string // how the last provisioner crashed
}

var _ service.Service = (*Service)(nil)

// New checks the configuration. Nothing runs before Start.
func New(c Config) (*Service, error) {
	if c.Desk == nil || c.Store == nil || c.Layout == nil || c.Bus == nil || c.Logger == nil || len(c.Program) == 0 {
		return nil, fault.New("workers.New", fault.Internal, "a part of the configuration is missing")
	}
	if !filepath.IsAbs(c.Program[0]) {
		return nil, fault.New("workers.New", fault.Internal, "the path of the program is not absolute")
	}
	if c.Plugins != "" {
		if info, err := os.Stat(c.Plugins); err != nil || !info.IsDir() || !filepath.IsAbs(c.Plugins) {
			return nil, fault.New("workers.New", fault.Invalid, "the folder of plug-ins "+c.Plugins+" does not exist").
				Hint("correct [cluster] plugins-folder, or make the folder")
		}
	}
	if c.Isolation != nil && c.Isolation.FirstUser != 0 && c.LastUser < 2 {
		return nil, fault.New("workers.New", fault.Internal, "there are no users for provisioners")
	}
	c.Max = cmp.Or(c.Max, 8)
	for _, d := range []struct {
		value *time.Duration
		other time.Duration
	}{
		{&c.Idle, 5 * time.Minute}, {&c.Turn, time.Minute}, {&c.Sweep, 3 * time.Second}, {&c.Silent, 2 * time.Minute},
		{&c.Pause, time.Second}, {&c.PauseMax, 2 * time.Minute}, {&c.Steady, 5 * time.Minute},
	} {
		*d.value = cmp.Or(*d.value, d.other)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Service{
		c: c, name: "server/" + c.Store.Replica().String()[:8], projects: map[uuid.UUID]*state{},
		looked: make(chan struct{}),
	}
	if c.Isolation != nil {
		s.users = &users{
			config: isolation.Config{
				Support: c.Isolation.Support, FirstUser: c.Isolation.FirstUser, Read: c.Isolation.Read,
			},
			last: c.LastUser, folder: c.Layout.Provisioners(),
			data: func(id uuid.UUID) string { return c.Layout.Provisioner(id).Data() },
		}
		if !c.Isolation.Support.Users {
			s.users.config.FirstUser = 0
		}
	}
	return s, nil
}

func (s *Service) now() time.Time { return s.c.Now() }

// Start begins to run provisioners.
func (s *Service) Start(ctx context.Context) error {
	return s.running.Start(ctx, func(context.Context) (func(context.Context), error) { return s.run, nil })
}

// Stop ends all provisioners, and what they have started.
func (s *Service) Stop() { s.running.Stop() }

func (s *Service) run(ctx context.Context) {
	events := s.c.Bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Cluster || e.Topic == bus.Lagged })
	defer events.Close()
	ended := make(chan *child)
	defer s.endAll(ended)
	s.forget(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	soon := false // a look is due at once, and not at the next sweep
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-ended:
			s.recordEnd(c)
		case <-timer.C:
			soon = false
			timer.Reset(s.look(ctx, ended))
			continue
		case <-events.Events():
		}
		if !soon { // the events of a moment make one look
			soon = true
			timer.Reset(gather)
		}
	}
}

// gather is how long further events are awaited before a look.
const gather = 50 * time.Millisecond

// look reads who has something to do, and starts and ends provisioners. It returns when to look again.
func (s *Service) look(ctx context.Context, ended chan *child) time.Duration {
	work, err := s.c.Store.ClusterWork(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.c.Logger.Warn("cannot look which projects have tasks of clusters", "error", err)
		}
		return s.c.Sweep
	}
	now := s.now()
	all := s.note(now, work)
	o := decide(now, all, limits{Max: s.c.Max, Idle: s.c.Idle, Turn: s.c.Turn, Silent: s.c.Silent})
	for _, id := range o.Kill {
		s.c.Logger.Error("a provisioner hangs, and is ended", "project", id)
		s.with(id, func(p *state) { p.child.signal(syscall.SIGKILL) })
	}
	for _, id := range o.Drain {
		s.with(id, func(p *state) {
			p.Draining = true
			p.child.drain()
		})
	}
	for _, id := range o.Start {
		s.begin(id, ended)
	}
	next := s.c.Sweep
	for _, p := range all {
		if wait := p.NotBefore.Sub(now); !p.Running && p.wants() && wait > 0 {
			next = min(next, wait)
		}
	}
	s.mu.Lock()
	close(s.looked)
	s.looked = make(chan struct{})
	s.mu.Unlock()
	return next
}

// note remembers what the record says, and returns what decide goes by.
func (s *Service) note(now time.Time, work []store.ClusterWork) []project {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.projects {
		p.Listed, p.Ready = false, 0
	}
	for _, w := range work {
		p := s.projects[w.Project]
		if p == nil {
			p = &state{project: project{ID: w.Project}}
			s.projects[w.Project] = p
		}
		p.Listed, p.Workers, p.Ready, p.Worked = true, w.Workers, w.Ready, now
	}
	all := make([]project, 0, len(s.projects))
	for id, p := range s.projects {
		switch {
		case p.child != nil:
			p.Running, p.Asked = true, time.Unix(0, p.child.asked.Load())
			p.Waiting = time.Time{}
		case !p.wants():
			p.Waiting = time.Time{}
			if !p.Listed && now.Sub(p.NotBefore) > s.c.Steady {
				delete(s.projects, id)
				continue
			}
		case p.Waiting.IsZero():
			p.Waiting = now
		}
		all = append(all, p.project)
	}
	return all
}

func (s *Service) with(id uuid.UUID, f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[id]; p != nil && p.child != nil {
		f(p)
	}
}

// begin starts the provisioner of a project.
func (s *Service) begin(id uuid.UUID, ended chan *child) {
	s.mu.Lock()
	room := s.projects[id].Workers
	s.mu.Unlock()
	c, err := s.start(id, room, func(c *child) { ended <- c })
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[id]
	if err != nil {
		s.failed(p, err.Error())
		return
	}
	p.child, p.Running, p.Draining, p.Room, p.Since = c, true, false, room, c.since
}

// recordEnd records that a provisioner has ended.
func (s *Service) recordEnd(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[c.project]
	planned := p.Draining
	p.child, p.Running, p.Draining = nil, false, false
	if planned {
		s.c.Logger.Info("a provisioner has ended", "project", c.project)
		return
	}
	if s.now().Sub(c.since) >= s.c.Steady {
		p.failures = 0
	}
	s.failed(p, c.problem())
}

// failed records that a provisioner crashed, or could not be started. The caller holds the lock.
func (s *Service) failed(p *state, problem string) {
	p.failures++
	p.problem = problem
	wait := pause(p.failures, s.c.Pause, s.c.PauseMax)
	p.NotBefore = s.now().Add(wait)
	s.c.Logger.Error("a provisioner crashed", "project", p.ID, "problem", problem, "failures", p.failures,
		"pause", wait)
}

// endAll ends all provisioners.
func (s *Service) endAll(ended chan *child) {
	s.mu.Lock()
	var all sync.WaitGroup
	left := 0
	for _, p := range s.projects {
		if p.child != nil {
			left++
			all.Go(p.child.end)
		}
	}
	s.mu.Unlock()
	for range left {
		<-ended
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects = map[uuid.UUID]*state{}
}

// forget removes the folders of projects that do not exist any more.
func (s *Service) forget(ctx context.Context) {
	entries, err := os.ReadDir(s.c.Layout.Provisioners())
	if err != nil {
		return // there are none yet
	}
	projects, err := s.c.Store.Projects(ctx)
	if err != nil {
		s.c.Logger.Warn("cannot look for folders of projects that are gone", "error", err)
		return
	}
	for _, e := range entries {
		id, err := uuid.Parse(e.Name())
		if err != nil || slices.ContainsFunc(projects, func(p intent.Project) bool { return p.ID == id }) {
			continue
		}
		if err := os.RemoveAll(s.c.Layout.Provisioner(id).Dir()); err != nil {
			s.c.Logger.Warn("cannot remove the folder of a project that is gone", "project", id, "error", err)
		}
	}
}

// Provisioner is a provisioner of this server, or a project that waits for one.
type Provisioner struct {
	Project  uuid.UUID
	PID      int // 0: it does not run
	Room     int
	Since    time.Time // of its start, or of the wait
	Ending   bool      // it finishes the tasks that it has
	Failures int       // crashes in a row
	Problem  string    // of the last crash
}

// Provisioners lists the provisioners of this server and projects that wait for one, those first that began first.
func (s *Service) Provisioners() []Provisioner {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Provisioner
	for id, p := range s.projects {
		one := Provisioner{Project: id, Failures: p.failures, Problem: p.problem, Ending: p.Draining, Since: p.Waiting}
		switch {
		case p.child != nil:
			one.PID, one.Room, one.Since = p.child.pid, p.Room, p.Since
		case !p.wants():
			continue
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Provisioner) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Project.String(), b.Project.String()))
	})
	return out
}
