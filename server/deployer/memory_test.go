package deployer

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
)

// recorder is what the tests need beside Store: what control does to the record.
type recorder interface {
	Store
	StoreVersion(ctx context.Context, v intent.NewVersion, at time.Time) (int, error)
	ReleaseVersion(ctx context.Context, env intent.EnvironmentID, number int, at time.Time) error
	Actions(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ResourceID,
		kind intent.ActionKind,
		limit int,
	) ([]intent.Action, error)
	SetAgentPaused(ctx context.Context, env intent.EnvironmentID, name string, paused bool, _ intent.Actor) error
	CreateDryRun(ctx context.Context, d intent.DryRun) error
	DryRun(
		ctx context.Context,
		env intent.EnvironmentID,
		id intent.ActionID,
	) (intent.DryRun, []intent.ResourceDiff, error)
}

// memory is a record in memory, for tests of time and of failures: it is unreachable while away is set, and refuses
// the resources named in refuse.
type memory struct {
	mu       sync.Mutex
	versions []intent.NewVersion
	active   int
	states   map[intent.ResourceID]intent.ResourceState
	actions  []intent.Action
	ahead    []intent.Ahead
	paused   map[string]bool
	breakers map[string]intent.Breaker
	dryRuns  map[intent.ActionID]*intent.DryRun
	diffs    map[intent.ActionID][]intent.ResourceDiff
	away     bool
	refuse   string
	commits  int
	ends     int           // commits of ends
	takes    time.Duration // how long these take
	back     chan struct{} // gets a value for each refused call while away
}

func newMemory() *memory {
	return &memory{
		states:   map[intent.ResourceID]intent.ResourceState{},
		paused:   map[string]bool{},
		breakers: map[string]intent.Breaker{},
		dryRuns:  map[intent.ActionID]*intent.DryRun{},
		diffs:    map[intent.ActionID][]intent.ResourceDiff{},
		back:     make(chan struct{}, 1000),
	}
}

func (m *memory) lock() error {
	m.mu.Lock()
	if m.away {
		m.mu.Unlock()
		m.back <- struct{}{}
		return fault.New("memory", fault.Unavailable, "the database is away")
	}
	return nil
}

func (m *memory) setAway(away bool) {
	m.mu.Lock()
	m.away = away
	m.mu.Unlock()
}

func (m *memory) StoreVersion(_ context.Context, v intent.NewVersion, _ time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := len(m.versions) + 1
	for i := range v.Resources {
		v.Resources[i].Version = number
	}
	m.versions = append(m.versions, v)
	return number, nil
}

func (m *memory) ReleaseVersion(_ context.Context, _ intent.EnvironmentID, number int, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	here := map[intent.ResourceID]bool{}
	for _, r := range m.versions[number-1].Resources {
		here[r.ID] = true
		st, ok := m.states[r.ID]
		if !ok {
			st = intent.ResourceState{ID: r.ID, LastRun: intent.RunNew, Blocked: intent.NotBlocked}
		}
		if st.IntentHash != r.AttributeHash || st.Orphaned > 0 {
			st.IntentHash, st.Compliance, st.Orphaned, st.Drifted = r.AttributeHash, intent.HasUpdate, 0, false
			st = scheduler.Unparked(st)
		}
		m.states[r.ID] = st
	}
	for id, st := range m.states {
		if !here[id] && st.Orphaned == 0 {
			st.Orphaned = m.active
			m.states[id] = st
		}
	}
	m.active = number
	return nil
}

func (m *memory) ActiveVersion(context.Context, intent.EnvironmentID) (*intent.Version, error) {
	if err := m.lock(); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if m.active == 0 {
		return nil, nil
	}
	return &intent.Version{Number: m.active, Status: intent.VersionActive}, nil
}

func (m *memory) VersionResources(_ context.Context, _ intent.EnvironmentID, number int) ([]intent.Resource, error) {
	if err := m.lock(); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if number < 1 || number > len(m.versions) {
		return nil, fault.New("memory", fault.NotFound, "no such version")
	}
	all := slices.Clone(m.versions[number-1].Resources)
	slices.SortFunc(all, func(a, b intent.Resource) int { return a.ID.Compare(b.ID) })
	return all, nil
}

func (m *memory) VersionChanges(
	ctx context.Context,
	env intent.EnvironmentID,
	from, number int,
	purged []intent.ResourceID,
) ([]intent.Resource, int, error) {
	all, err := m.VersionResources(ctx, env, number)
	if err != nil {
		return nil, 0, err
	}
	before, err := m.VersionResources(ctx, env, from)
	if err != nil {
		return nil, 0, err
	}
	known := map[intent.ResourceID]intent.Resource{}
	for _, r := range before {
		r.Version = number
		known[r.ID] = r
	}
	var changed []intent.Resource
	for _, r := range all {
		if !reflect.DeepEqual(known[r.ID], r) || slices.Contains(purged, r.ID) {
			changed = append(changed, r)
		}
	}
	return changed, len(all), nil
}

func (m *memory) GoneResources(
	ctx context.Context,
	env intent.EnvironmentID,
	from, to int,
) ([]intent.ResourceID, error) {
	before, err1 := m.VersionResources(ctx, env, from)
	after, err2 := m.VersionResources(ctx, env, to)
	var gone []intent.ResourceID
	for _, r := range before {
		if !slices.ContainsFunc(after, func(a intent.Resource) bool { return a.ID == r.ID }) {
			gone = append(gone, r.ID)
		}
	}
	return gone, errors.Join(err1, err2)
}

func (m *memory) VersionCode(
	_ context.Context,
	_ intent.EnvironmentID,
	number int,
) ([]intent.ResourceCode, intent.PipConfig, error) {
	if err := m.lock(); err != nil {
		return nil, intent.PipConfig{}, err
	}
	defer m.mu.Unlock()
	return m.versions[number-1].Code, m.versions[number-1].Pip, nil
}

// deploys reports whether a resource is being deployed, or about to be.
func (m *memory) deploys(st intent.ResourceState) bool {
	return st.IsDeploying || slices.ContainsFunc(m.ahead, func(t intent.Ahead) bool {
		return t.Resource == st.ID &&
			!slices.ContainsFunc(m.actions, func(a intent.Action) bool { return a.ID == t.Action })
	})
}

func (m *memory) States(context.Context, intent.EnvironmentID) ([]intent.ResourceState, error) {
	if err := m.lock(); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var out []intent.ResourceState
	for _, st := range m.states {
		st.IsDeploying = m.deploys(st)
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b intent.ResourceState) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return out, nil
}

func (m *memory) Agents(context.Context, intent.EnvironmentID, intent.ListQuery) (intent.Page[intent.Agent], error) {
	if err := m.lock(); err != nil {
		return intent.Page[intent.Agent]{}, err
	}
	defer m.mu.Unlock()
	var page intent.Page[intent.Agent]
	for name, paused := range m.paused {
		page.Items = append(page.Items, intent.Agent{Name: name, Paused: paused})
	}
	for name, b := range m.breakers {
		page.Items = append(page.Items, intent.Agent{Name: name, Breaker: b, Paused: m.paused[name]})
	}
	return page, nil
}

func (m *memory) SetAgentPaused(
	_ context.Context,
	_ intent.EnvironmentID,
	name string,
	paused bool,
	_ intent.Actor,
) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused[name] = paused
	return nil
}

func (m *memory) StartActions(_ context.Context, _ intent.EnvironmentID, actions []intent.Action) error {
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, a := range actions {
		if a.Resource.Value == m.refuse && m.refuse != "" {
			return fault.New("memory", fault.Invalid, "not this one")
		}
	}
	m.commits++
	for _, a := range actions {
		m.actions = append(m.actions, a)
		st := m.states[a.Resource]
		st.IsDeploying = true
		m.states[a.Resource] = st
	}
	return nil
}

func (m *memory) SetAhead(_ context.Context, _ intent.EnvironmentID, tasks []intent.Ahead) error {
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.commits++
	m.ahead = tasks
	return nil
}

// ended is the number of commits of ends so far.
func (m *memory) ended() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ends
}

// listed is how many are recorded ahead.
func (m *memory) listed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ahead)
}

func (m *memory) FinishActions(_ context.Context, _ intent.EnvironmentID, done []intent.FinishedAction) error {
	time.Sleep(m.takes)
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.commits++
	m.ends++
	for _, f := range done {
		if i := m.open(f.Action.ID); i >= 0 {
			m.actions[i] = f.Action
		} else {
			m.actions = append(m.actions, f.Action)
		}
		if f.Breaker != nil {
			m.breakers[f.Action.Resource.Agent] = *f.Breaker
		}
		st := m.states[f.State.ID]
		if st.IntentHash == f.State.IntentHash && st.Orphaned == 0 {
			st = f.State
		}
		st.LastRun, st.LastRunAt, st.IsDeploying = f.State.LastRun, f.State.LastRunAt, f.State.IsDeploying
		st.DeployedHash, st.LastDeployed = f.State.DeployedHash, f.State.LastDeployed
		m.states[f.State.ID] = st
	}
	return nil
}

func (m *memory) Unpark(
	_ context.Context,
	_ intent.EnvironmentID,
	ids []intent.ResourceID,
) ([]intent.ResourceID, error) {
	if err := m.lock(); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, id := range ids {
		st := m.states[id]
		st = scheduler.Unparked(st)
		m.states[id] = st
	}
	return ids, nil
}

func (m *memory) open(id intent.ActionID) int {
	return slices.IndexFunc(m.actions, func(a intent.Action) bool { return a.ID == id && a.Finished == nil })
}

func (m *memory) ResetDeploying(_ context.Context, _ intent.EnvironmentID, at time.Time, forget bool) (int, error) {
	if err := m.lock(); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	n := 0
	for i := range m.actions {
		if m.actions[i].Finished == nil {
			m.actions[i].Finished, m.actions[i].Status = &at, intent.StatusCancelled
			n++
		}
	}
	for id, st := range m.states {
		if st.IsDeploying = m.deploys(st); st.IsDeploying && !forget {
			st = scheduler.Interrupted(st)
		}
		st.IsDeploying = false
		m.states[id] = st
	}
	m.ahead = nil
	return n, nil
}

func (m *memory) Actions(
	_ context.Context,
	_ intent.EnvironmentID,
	id intent.ResourceID,
	_ intent.ActionKind,
	limit int,
) ([]intent.Action, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []intent.Action
	for i := len(m.actions) - 1; i >= 0 && len(out) < limit; i-- {
		if id.IsZero() || m.actions[i].Resource == id {
			out = append(out, m.actions[i])
		}
	}
	return out, nil
}

func (m *memory) CreateDryRun(_ context.Context, d intent.DryRun) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dryRuns[d.ID] = &d
	return nil
}

func (m *memory) AddDryRunDiffs(
	_ context.Context,
	_ intent.EnvironmentID,
	id intent.ActionID,
	diffs []intent.ResourceDiff,
) error {
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.dryRuns[id].Ended != nil {
		return fault.New("memory", fault.Conflict, "ended")
	}
	m.diffs[id] = append(m.diffs[id], diffs...)
	m.dryRuns[id].Todo -= len(diffs)
	return nil
}

func (m *memory) EndDryRun(
	_ context.Context,
	_ intent.EnvironmentID,
	id intent.ActionID,
	ending intent.DryRunEnding,
	reason string,
	behind map[intent.ResourceID]intent.ResourceID,
	at time.Time,
) error {
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	run := m.dryRuns[id]
	if run.Ended != nil {
		return fault.New("memory", fault.Conflict, "ended")
	}
	run.Ended, run.Ending, run.Reason = &at, ending, reason
	for i, d := range m.diffs[id] {
		m.diffs[id][i].Behind = behind[d.ID]
	}
	return nil
}

func (m *memory) OpenDryRuns(context.Context, intent.EnvironmentID) (out []intent.DryRun, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, run := range m.dryRuns {
		if run.Ended == nil {
			out = append(out, *run)
		}
	}
	return out, nil
}

func (m *memory) DryRunChosen(
	_ context.Context,
	_ intent.EnvironmentID,
	id intent.ActionID,
) ([]intent.ResourceID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dryRuns[id].Chosen, nil
}

func (m *memory) FactRequests(context.Context, intent.EnvironmentID) ([]intent.ResourceID, error) {
	return nil, nil
}
func (m *memory) FactsAnswered(context.Context, intent.EnvironmentID, []intent.ResourceID) error {
	return nil
}
func (m *memory) FactsDue(context.Context, intent.EnvironmentID) ([]intent.FactsDue, error) {
	return nil, nil
}

func (m *memory) DryRun(
	_ context.Context,
	_ intent.EnvironmentID,
	id intent.ActionID,
) (intent.DryRun, []intent.ResourceDiff, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.dryRuns[id], m.diffs[id], nil
}

var testEnv = uuid.MustParse("11111111-2222-3333-4444-555555555555")

func (m *memory) FinishRequests(context.Context, intent.EnvironmentID, []int64) error { return nil }
