package desk

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
)

// Catalogues are what projects offer, with the secrets of their providers. *admin.Service has them.
type Catalogues interface {
	cluster.Catalogues
	// ProviderSecrets returns the sensitive fields of a provider, for a cluster that is made from a version of it.
	ProviderSecrets(
		ctx context.Context, project uuid.UUID, provider string, version int,
	) (map[string]json.RawMessage, error)
}

// Resources are the files of plug-ins. *resources.Service has them.
type Resources interface {
	// Active returns the files that the plug-in may use now.
	Active(ctx context.Context, project uuid.UUID, kind, plugin string) ([]task.Resource, error)
	// OpenHash opens a content that is active for a project. NotFound: there is none.
	OpenHash(ctx context.Context, project uuid.UUID, hash string) (io.ReadCloser, int64, error)
}

// Config has what a Desk needs; all of it is required, unless its comment says otherwise.
type Config struct {
	Store      *store.Store
	Catalogues Catalogues
	Resources  Resources
	Key        *secret.Key
	Bus        *bus.Bus
	Logger     *slog.Logger
	// Lease is how long a provisioner may be silent before its tasks go to others; 30 seconds when zero.
	Lease time.Duration
	// Sweep is the time between two looks for leases that are over; a third of Lease when zero.
	Sweep time.Duration
	// Backoff is the wait after a task failed for the first time; it doubles each time. 5 seconds when zero.
	Backoff time.Duration
	// PerProvider is how many machines of a project are made or deleted at a provider at a time; 20 when zero.
	PerProvider int
	// CreateTimeout, ConfirmTimeout and ServiceTimeout end attempts; 10, 15 and 30 minutes when zero.
	CreateTimeout, ConfirmTimeout, ServiceTimeout time.Duration
}

// Who is a provisioner that was identified.
type Who struct {
	ID      uuid.UUID // zero: it belongs to the server
	Project uuid.UUID
	Name    string
}

// Desk hands out tasks. It is safe for concurrent use; while it runs as a service, it takes leases back that are over.
type Desk struct {
	c       Config
	running service.Runner
	output  outputs
	cache   definitions
	ends    merger

	mu      sync.Mutex
	takes   map[uuid.UUID]*sync.Mutex // by project: one statement at a time hands out its tasks
	waiting map[uuid.UUID]chan struct{}
}

var _ service.Service = (*Desk)(nil)

// New makes a desk.
func New(c Config) (*Desk, error) {
	if c.Store == nil || c.Catalogues == nil || c.Resources == nil || c.Key == nil || c.Bus == nil ||
		c.Logger == nil {
		return nil, errors.New("desk.New: a part of the configuration is missing")
	}
	defaults := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	defaults(&c.Lease, 30*time.Second)
	defaults(&c.Sweep, c.Lease/3)
	defaults(&c.Backoff, 5*time.Second)
	defaults(&c.CreateTimeout, 10*time.Minute)
	defaults(&c.ConfirmTimeout, 15*time.Minute)
	defaults(&c.ServiceTimeout, 30*time.Minute)
	if c.PerProvider == 0 {
		c.PerProvider = 20
	}
	d := &Desk{c: c, takes: map[uuid.UUID]*sync.Mutex{}, waiting: map[uuid.UUID]chan struct{}{}}
	d.cache.catalogues = c.Catalogues
	d.output.pending = map[uuid.UUID]*printed{}
	d.ends.record = func(ctx context.Context, ends []intent.ClusterTaskEnd) error {
		ctx, cancel := context.WithTimeout(ctx, c.Lease) // a later end would be dropped
		defer cancel()
		_, err := c.Store.EndClusterTasks(ctx, ends)
		return err
	}
	return d, nil
}

// Start begins to take leases back, and to record output.
func (d *Desk) Start(ctx context.Context) error {
	return d.running.Start(context.WithoutCancel(ctx), func(context.Context) (func(context.Context), error) {
		return d.run, nil
	})
}

// Stop ends that.
func (d *Desk) Stop() { d.running.Stop() }

func (d *Desk) run(ctx context.Context) {
	events := d.c.Bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Cluster || e.Topic == bus.Lagged })
	defer events.Close()
	late, flush := time.NewTicker(d.c.Sweep), time.NewTicker(outputInterval)
	defer late.Stop()
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			d.flush(context.WithoutCancel(ctx))
			return
		case <-late.C:
			if err := d.takeBack(ctx); err != nil && ctx.Err() == nil {
				d.c.Logger.Warn("cannot look for tasks whose provisioner is gone", "error", err)
			}
		case <-flush.C:
			d.flush(ctx)
		case e := <-events.Events():
			d.wake(ctx, e)
		}
	}
}

// wake makes those look again that wait for tasks of the project where something changed; of any, if that is unknown.
func (d *Desk) wake(ctx context.Context, e bus.Event) {
	var of uuid.UUID
	if e.Topic != bus.Lagged && e.Environment != (intent.EnvironmentID{}) {
		of = d.cache.project(ctx, d.c.Store, e.Environment)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for project, c := range d.waiting {
		if of != (uuid.UUID{}) && of != project {
			continue
		}
		close(c)
		delete(d.waiting, project)
	}
}

// lookAgain is how long a provisioner waits at most without looking: a back-off that is over makes no event.
const lookAgain = time.Second

// Take returns tasks of the provisioner's project, room of them at most. Without one it waits; no task after that is no
// error.
func (d *Desk) Take(ctx context.Context, who Who, room int, wait time.Duration) ([]task.Task, error) {
	room = min(room, task.MaxTake)
	if room <= 0 {
		return nil, fault.New("desk.Take", fault.Invalid, "a provisioner without room asks for tasks")
	}
	deadline := time.Now().Add(min(wait, maxWait))
	for {
		woken := d.wait(who.Project)
		// Whoever gives up while tasks are leased gets them nevertheless, if there is still somebody: otherwise nobody
		// has them until the leases are over.
		tasks, err := d.takeNow(context.WithoutCancel(ctx), who, room)
		left := time.Until(deadline)
		if err != nil || len(tasks) > 0 || left <= 0 {
			return tasks, err
		}
		timer := time.NewTimer(min(left, lookAgain))
		select {
		case <-woken:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, nil
		}
		timer.Stop()
	}
}

const maxWait = 30 * time.Second

// wait returns what is closed when there may be tasks.
func (d *Desk) wait(project uuid.UUID) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.waiting[project]
	if c == nil {
		c = make(chan struct{})
		d.waiting[project] = c
	}
	return c
}

func (d *Desk) turn(project uuid.UUID) *sync.Mutex {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.takes[project]
	if m == nil {
		m = &sync.Mutex{}
		d.takes[project] = m
	}
	return m
}

// takeNow takes tasks and composes them. Tasks without anything to run are complete at once; tasks that cannot be
// composed fail with the reason. Then others may be ready, so it looks again.
func (d *Desk) takeNow(ctx context.Context, who Who, room int) ([]task.Task, error) {
	turn := d.turn(who.Project)
	turn.Lock()
	defer turn.Unlock()
	for range 100 {
		rows, err := d.c.Store.TakeClusterTasks(ctx, who.Project, who.Name, room, d.c.Lease, d.c.PerProvider)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		// From here on the tasks are leased: what is not handed out is given back when the lease is over.
		tasks, ended, err := d.compose(ctx, rows)
		if err != nil {
			back, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.c.Lease/3)
			defer cancel()
			if failed := d.c.Store.GiveClusterTasksBack(back, rows); failed != nil {
				d.c.Logger.Warn("tasks that were handed to nobody wait for the end of their lease", "error", failed)
			}
			return nil, err
		}
		if len(ended) > 0 {
			if err := d.record(ctx, rows, ended); err != nil {
				return nil, err
			}
		}
		if len(tasks) > 0 {
			d.announce(ctx, rows)
			return tasks, nil
		}
	}
	return nil, nil
}

// announce says that tasks of clusters changed.
func (d *Desk) announce(ctx context.Context, rows []intent.ClusterTask) {
	seen := map[uuid.UUID]bool{}
	for _, r := range rows {
		if !seen[r.Cluster] {
			seen[r.Cluster] = true
			d.publish(ctx, r.Cluster)
		}
	}
}

func (d *Desk) publish(ctx context.Context, cluster uuid.UUID) {
	env := d.cache.environment(ctx, d.c.Store, cluster)
	d.c.Bus.Publish(bus.Event{Environment: env, Topic: bus.Cluster, ID: cluster.String()})
}

// Renew renews leases, and returns the tasks that are no longer the provisioner's.
func (d *Desk) Renew(ctx context.Context, who Who, leases []task.Lease) (gone []uuid.UUID, err error) {
	all := make([]store.ClusterLease, len(leases))
	for i, l := range leases {
		all[i] = store.ClusterLease(l)
	}
	still, err := d.c.Store.RenewClusterTasks(ctx, who.Project, who.Name, all, d.c.Lease)
	if err != nil {
		return nil, err
	}
	kept := map[uuid.UUID]bool{}
	for _, id := range still {
		kept[id] = true
	}
	for _, l := range leases {
		if !kept[l.ID] {
			gone = append(gone, l.ID)
		}
	}
	return gone, nil
}

// Open opens the content of a resource for a provisioner.
func (d *Desk) Open(ctx context.Context, who Who, hash string) (io.ReadCloser, int64, error) {
	return d.c.Resources.OpenHash(ctx, who.Project, hash)
}
