// Package worker takes tasks from the desk, has plug-ins carry them out, and finishes them.
//
//	           take ┌──────────┐ start                      ┌────────── attempt ──────────┐
//	desk ──────────▶│   loop   │───────────────────────────▶│ resources ─▶ plug-in ─▶ Result│
//	     ◀──────────│          │                            └──┬───────────────────────┬──┘
//	           renew│  leases  │◀── one entry for each ────────┘ output               │ result
//	     ◀──────────└──────────┘    taken, until it is finished  ▼                    ▼
//	     ◀──────────────────────────────────────────────── printer (batches)    finisher (batches)
//
// A task is worked on as long as its lease lasts. All leases are renewed by one request after a third of their time.
// When the desk says that a lease is gone, or when renewals fail until its time is over, the context of the attempt
// ends at once, and whatever it would have answered is dropped: somebody else may be at it by now.
//
// Nothing that a plug-in does harms the worker: a panic is a failed attempt, one that runs for too long is ended, one
// that does not end is left behind, and output never costs more memory than task.MaxOutput or so.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/resources"
	"ordain.dev/ordain/server/cluster/task"
)

// Plugins are the plug-ins of a provisioner, by the names of their types.
type Plugins struct {
	Providers  map[string]plugin.Provider
	Automators map[string]plugin.Automator
}

// Config is what a Worker needs.
type Config struct {
	Client  *client.Client
	Plugins Plugins
	// Folder is the worker's own: resources, and the folders of running tasks. It is made if it does not exist.
	Folder string
	Room   int // tasks that run at a time
	Logger *slog.Logger

	Program string // name and version of the program, for the desk. Empty: ordain
	// ResourcesMax is how many bytes of resources are kept that nobody uses. 0: as package resources has it.
	ResourcesMax int64
	// Grace is how long tasks may go on after Stop. 0: 30 s.
	Grace time.Duration
	// Lost is closed when the desk is gone for good: then tasks are cut off at once, and their results are not sent.
	// nil: the desk always comes back.
	Lost <-chan struct{}
	// Hang is how long a plug-in may take to return after its context has ended. 0: 10 s.
	Hang time.Duration
	// Backoff is for asking the desk again after a failure.
	Backoff client.Backoff
}

// takeWait is how long the desk is asked to wait for a task.
const takeWait = 30 * time.Second

// Worker is a service that works for one project. Build it with New.
type Worker struct {
	c         Config
	runner    service.Runner
	resources *resources.Store
	leases    *leases
	finisher  *finisher

	freed chan struct{} // has a value after an attempt has ended

	mu      sync.Mutex
	running int    // attempts that have not ended
	stuck   int    // plug-ins that were left behind, and have not returned
	project string // from the first Welcome
}

// New checks the configuration and makes a worker.
func New(c Config) (*Worker, error) {
	switch {
	case c.Client == nil || c.Logger == nil:
		return nil, fault.New("worker.New", fault.Internal, "a worker needs a client and a logger")
	case c.Folder == "" || !filepath.IsAbs(c.Folder):
		return nil, fault.New("worker.New", fault.Invalid, "the folder of the provisioner is not an absolute path")
	case c.Room < 1:
		return nil, fault.New("worker.New", fault.Invalid, "a provisioner has to have room for one task at least")
	}
	if c.Program == "" {
		c.Program = "ordain"
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.Hang == 0 {
		c.Hang = 10 * time.Second
	}
	return &Worker{c: c, freed: make(chan struct{}, 1)}, nil
}

// Start implements service.Service. The desk need not be there yet.
func (w *Worker) Start(ctx context.Context) error {
	return w.runner.Start(ctx, func(context.Context) (func(context.Context), error) {
		if err := w.prepare(); err != nil {
			return nil, err
		}
		return func(ctx context.Context) {
			if err := w.work(ctx); err != nil {
				w.c.Logger.Error("the provisioner has ended", "error", err)
			}
		}, nil
	})
}

// Stop implements service.Service: no further task is taken, those that run may go on for the time of grace, and then
// they are cut off.
func (w *Worker) Stop() { w.runner.Stop() }

// Run works until the context ends, and then as Stop says. It returns an error if it cannot work at all. A worker is
// either started or run.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.prepare(); err != nil {
		return err
	}
	return w.work(ctx)
}

// prepare makes the folders, and removes those of tasks that an earlier process was working on.
func (w *Worker) prepare() error {
	// Plug-ins that run as other users pass through these folders, and cannot list them.
	if err := os.MkdirAll(w.c.Folder, 0o711); err != nil {
		return fault.Disk("worker.Start", w.c.Folder, err)
	}
	if err := os.RemoveAll(w.workDir()); err != nil {
		return fault.Disk("worker.Start", w.workDir(), err)
	}
	if err := os.Mkdir(w.workDir(), 0o711); err != nil {
		return fault.Disk("worker.Start", w.workDir(), err)
	}
	store, err := resources.Open(resources.Config{
		Folder: filepath.Join(w.c.Folder, "resources"), Max: w.c.ResourcesMax, Fetch: w.c.Client.Resource,
		Logger: w.c.Logger,
	})
	w.resources = store
	return err
}

func (w *Worker) workDir() string { return filepath.Join(w.c.Folder, "work") }

// work takes tasks until the context ends, and waits for those that run.
func (w *Worker) work(ctx context.Context) error {
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	// What goes on while the tasks end has contexts of its own.
	attempts, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)
	links, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	w.leases = newLeases(w.c.Client, w.c.Logger)
	w.finisher = newFinisher(w.c.Client, w.leases, w.c.Backoff, w.c.Logger)
	var background, running sync.WaitGroup
	background.Go(func() { w.leases.run(links) })
	background.Go(func() { w.finisher.run(links) })
	defer background.Wait()
	defer hangUp()
	background.Go(func() {
		select {
		case <-w.c.Lost:
			cutOff(errStopped)
			stopTaking()
		case <-links.Done():
		}
	})

	err := w.takeAll(taking, func(t task.Task, lease time.Duration) {
		held := w.leases.add(attempts, t, lease)
		w.mu.Lock()
		w.running++
		w.mu.Unlock()
		running.Go(func() {
			defer w.free()
			w.attempt(held, t)
		})
	})
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	grace := time.NewTimer(w.c.Grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
		w.c.Logger.Warn("tasks are cut off, because the provisioner stops", "tasks", w.leases.count())
		cutOff(errStopped)
		<-ended
	}
	select {
	case <-w.c.Lost:
	default:
		w.finisher.drain(links, finishPatience)
	}
	return err
}

// finishPatience is how long the last results are sent when the provisioner stops. The leases of those that cannot be
// sent run out.
const finishPatience = 5 * time.Second

// free makes room for another task.
func (w *Worker) free() {
	w.mu.Lock()
	w.running--
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// room returns how many tasks can be taken. Plug-ins that do not return may hold as many goroutines as there is room
// for, and no more.
func (w *Worker) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck >= w.c.Room {
		return 0
	}
	return min(w.c.Room-w.running, task.MaxTake)
}

// takeAll introduces the provisioner, and takes tasks whenever there is room, until the context ends or the server asks
// for the end.
func (w *Worker) takeAll(ctx context.Context, start func(task.Task, time.Duration)) error {
	known := false
	var lease time.Duration
	for failures := 0; ctx.Err() == nil; {
		room := w.room()
		if room <= 0 {
			select {
			case <-w.freed:
				_ = client.Sleep(ctx, gather)
			case <-ctx.Done():
			}
			continue
		}
		var err error
		if !known {
			lease, err = w.hello(ctx)
			if fault.Is(err, fault.Conflict) {
				return err
			}
			known = err == nil
		}
		var taken task.Taken
		if err == nil {
			taken, err = w.c.Client.Take(ctx, task.Take{Room: room, WaitMS: takeWait.Milliseconds()})
		}
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			known = false // a server that has started again may not know this provisioner any more
			w.c.Logger.Warn("no tasks can be taken", "error", err)
			_ = client.Sleep(ctx, w.c.Backoff.Pause(failures))
			failures++
			continue
		}
		failures = 0
		for _, t := range taken.Tasks {
			own := lease
			if t.LeaseMS > 0 {
				own = max(time.Duration(t.LeaseMS)*time.Millisecond, leaseMin)
			}
			start(t, own)
		}
		if taken.Ending {
			w.c.Logger.Info("the server asks the provisioner to end")
			return nil
		}
	}
	return nil
}

// hello introduces the provisioner, and returns the time of its leases.
func (w *Worker) hello(ctx context.Context) (time.Duration, error) {
	welcome, err := w.c.Client.Hello(ctx, task.Hello{Protocol: task.Version, Program: w.c.Program, Room: w.c.Room})
	if err != nil {
		return 0, err
	}
	lease := time.Duration(welcome.LeaseMS) * time.Millisecond
	if lease < leaseMin {
		return 0, fault.New("worker.Run", fault.Invalid,
			fmt.Sprintf("the server's leases last for %s, which is too short to renew them", lease))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.project != "" && welcome.Project != w.project {
		return 0, fault.New("worker.Run", fault.Conflict,
			fmt.Sprintf("the server wants this provisioner to work for the project %s, and it has worked for %s",
				welcome.Project, w.project)).
			Hint("a provisioner serves one project; start another one with a folder of its own")
	}
	if w.project == "" {
		w.c.Logger.Info("the provisioner works", "name", welcome.Name, "project", welcome.Project, "room", w.c.Room)
	}
	w.project = welcome.Project
	return lease, nil
}

// leaseMin is the shortest lease that can be renewed in time.
const leaseMin = 100 * time.Millisecond

// leaseOf returns the lease of a task as messages have it.
func leaseOf(t task.Task) task.Lease { return task.Lease{ID: t.ID, Fence: t.Fence} }

// idsOf returns the ids as a set.
func idsOf(ids []uuid.UUID) map[uuid.UUID]bool {
	out := map[uuid.UUID]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}
