package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// Definition declares a state machine for the resources of a type. Processes of different versions of a definition may
// be in the record at the same time: a process keeps the states, the number of attempts and the deadline with which it
// was scheduled, and a handler that it does not know any more counts as one that did not run.
type Definition struct {
	Name     string // such as agent.activate; it never changes
	Resource string // the type of its resources

	// Paths are the states in which it may begin, each with its transitional and its final state. None: its resources
	// have no state.
	Paths []intent.ProcessPath
	// Failed is the state of the resource when the process dies. It is required with Paths, so that no resource stays
	// in a transitional state.
	Failed string
	// Cancelled is its state when the process is cancelled; empty: the one from which it began.
	Cancelled string

	// Pre, Main and Post run in this order. A process that is tried again continues after the last one that finished.
	Pre, Main, Post []Handler

	// CancelledBy are processes that end this one when they are scheduled for the same resource. A process also ends
	// when something else moves the state of its resource.
	CancelledBy []string
	// Then is a process that is scheduled for the resource when this one is done.
	Then string
	// Delegate continues when the resource is in a state that ends this process, but in which Delegate may begin.
	Delegate string

	Attempts int           // 10 when zero
	Attempt  time.Duration // the time for one attempt; 5 minutes when zero
	Deadline time.Duration // the time for the whole; a day when zero, endless when negative and without Paths
	Priority int           // 1 is served before 4; 2 when zero
	Queue    string        // whose workers run it; the default queue when empty
	// Single merges it with one that waits for the same resource, instead of waiting behind that.
	Single bool
	// Schedule repeats it for one resource, whose id is the name of the process: a cron expression, or @every 1h. Such
	// a process needs no caller; it is Single, and has no Paths.
	Schedule string
}

// Handler is one step of a process. Do is idempotent: it runs again when its end could not be recorded. Its context
// ends with the time of the attempt, or when the process is cancelled or was taken by another worker.
type Handler struct {
	Name string
	Do   func(ctx context.Context, run *Run) error
}

// Paths returns a path from each of these states.
func Paths(from []string, during, done string) (out []intent.ProcessPath) {
	for _, state := range from {
		out = append(out, intent.ProcessPath{From: state, During: during, Done: done})
	}
	return out
}

// Run is one attempt at a process, as its handlers see it.
type Run struct {
	process intent.Process
	data    map[string]json.RawMessage
	then    *Intention
}

// Process returns the process as it was when the attempt began.
func (r *Run) Process() intent.Process { return r.process }

// Holding returns a store whose changes are refused once another worker has taken the process. A handler records
// everything through it.
func (r *Run) Holding(s *store.Store) *store.Store { return s.Holding(r.process.Claim()) }

// Get decodes a value of the process's data; into stays as it is when there is no such value.
func (r *Run) Get(key string, into any) error {
	if r.data[key] == nil {
		return nil
	}
	return json.Unmarshal(r.data[key], into)
}

// Set sets a value of the process's data. It is recorded when the handler has finished.
func (r *Run) Set(key string, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		r.data[key] = raw
	}
	return err
}

// Then schedules another process in the transaction that ends this one.
func (r *Run) Then(i Intention) { r.then = &i }

// Intention is what somebody wants to be done.
type Intention struct {
	Process     string // the name of a definition
	Resource    string // the id
	Environment intent.EnvironmentID
	Project     [16]byte
	Data        map[string]any
	By          string // who wants it
	After       time.Duration
}

// againError ends an attempt that cannot go on yet; the process is tried again later.
type againError struct{ at time.Time }

func (e *againError) Error() string { return "the process waits until " + e.at.Format(time.RFC3339) }

// Again is what a handler returns to be run again at a time, from the first handler on. It is no failure.
func Again(at time.Time) error { return &againError{at} }

// neverError ends a process that can never succeed.
type neverError struct{ error }

func (e *neverError) Unwrap() error { return e.error }

// Never is what a handler returns to have the process die at once, because no other attempt can succeed.
func Never(err error) error { return &neverError{err} }

// cancelError ends a process as cancelled.
type cancelError struct{ why string }

func (e *cancelError) Error() string { return e.why }

// Cancel is what a handler returns to end the process as cancelled.
func Cancel(why string) error { return &cancelError{why} }

const (
	defaultAttempts = 10
	defaultAttempt  = 5 * time.Minute
	defaultDeadline = 24 * time.Hour
	defaultPriority = 2
)

// withDefaults fills in what a definition leaves open.
func (d Definition) withDefaults() Definition {
	if d.Attempts == 0 {
		d.Attempts = defaultAttempts
	}
	if d.Attempt == 0 {
		d.Attempt = defaultAttempt
	}
	if d.Deadline == 0 {
		d.Deadline = defaultDeadline
	}
	if d.Priority == 0 {
		d.Priority = defaultPriority
	}
	if d.Schedule != "" {
		d.Single, d.Deadline = true, -1
	}
	return d
}

// handlers returns all handlers in their order.
func (d Definition) handlers() []Handler { return slices.Concat(d.Pre, d.Main, d.Post) }

// validate reports what is wrong with a definition among others.
func (d Definition) validate(all map[string]Definition) error {
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if d.Name == "" || d.Resource == "" {
		complain("it needs a name and a type of resources")
	}
	if len(d.Main) == 0 {
		complain("it has no handler")
	}
	seen := map[string]bool{}
	for _, h := range d.handlers() {
		if h.Name == "" || h.Do == nil || seen[h.Name] {
			complain("the handler %q has no name of its own, or does nothing", h.Name)
		}
		seen[h.Name] = true
	}
	froms := map[string]bool{}
	for _, p := range d.Paths {
		if p.During == "" || p.Done == "" || froms[p.From] || p.Done == p.During {
			complain("the path %q, %q, %q is not one way from one state to another", p.From, p.During, p.Done)
		}
		froms[p.From] = true
	}
	if len(d.Paths) > 0 && (d.Failed == "" || slices.ContainsFunc(d.Paths, func(p intent.ProcessPath) bool {
		return p.During == d.Failed
	})) {
		complain("a resource needs a state for when the process dies")
	}
	if len(d.Paths) > 0 && d.Deadline < 0 {
		complain("no resource may stay in a transitional state for ever: it needs a deadline")
	}
	if d.Attempts < 1 || d.Attempt < 0 || d.Priority < 1 || d.Priority > 4 {
		complain("its bounds make no sense")
	}
	if d.Schedule != "" {
		if _, err := cron.ParseStandard(d.Schedule); err != nil || len(d.Paths) > 0 {
			complain("it cannot be repeated as %q", d.Schedule)
		}
	}
	for _, name := range append(slices.Clone(d.CancelledBy), d.Then, d.Delegate) {
		if other, has := all[name]; name != "" && (!has || other.Resource != d.Resource) {
			complain("there is no process %s for the same type of resources", name)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return fault.New("process.New", fault.Internal,
			"the process "+d.Name+": "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}
