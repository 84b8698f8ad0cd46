package api

import (
	"context"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// schedulerCalls are about what Inmanta runs as a scheduler process for each environment, and calls an agent process.
// Here it is the part of a server process that owns an environment.
func (s *server) schedulerCalls(c *calls) {
	whole(c, http.MethodGet, "/api/v1/agentproc", "List the schedulers of the environments: who owns them.",
		access.ListEnvironments, s.listSchedulers)
	whole(c, http.MethodGet, "/api/v1/agentproc/{id}", "Show what a scheduler runs.",
		access.ListEnvironments, s.getSchedulerReport)
	v2(c, http.MethodGet, "/api/v2/agents/process/{id}", "Show a scheduler, with what it runs when asked.",
		access.SeeAgents, s.getScheduler)
	v2(c, http.MethodGet, "/api/v2/agentrecovery", "Tell whether an environment has a scheduler.",
		access.SeeAgents, s.isEnabled)
	v2(c, http.MethodGet, "/api/v2/scheduler_status",
		"Show the intent and the state of every resource, as the scheduler works with them.",
		access.SeeResources, s.getSchedulerStatus)
	v2(c, http.MethodGet, "/api/v2/feature/bool", "Tell whether the server has a feature.",
		access.SeeStatus, s.hasFeature)
}

// scheduler is a scheduler as the API shows it.
type scheduler struct {
	SID         uuid.UUID        `json:"sid"`
	Hostname    string           `json:"hostname"`
	Environment uuid.UUID        `json:"environment"`
	FirstSeen   *timestamp       `json:"first_seen"`
	Expired     *timestamp       `json:"expired"`
	State       *schedulerReport `json:"state"`
}

// schedulerV1 is a scheduler as version 1 shows it.
type schedulerV1 struct {
	ID          uuid.UUID  `json:"id"`
	SID         uuid.UUID  `json:"sid"`
	Hostname    string     `json:"hostname"`
	Environment uuid.UUID  `json:"environment"`
	FirstSeen   *timestamp `json:"first_seen"`
	Expired     *timestamp `json:"expired"`
	Endpoints   []string   `json:"endpoints"`
}

type schedulersEnvelope struct {
	Processes []schedulerV1 `json:"processes"`
}

// schedulerReport is what a scheduler runs. Resources are the bytes of memory of each executor, by its process id.
type schedulerReport struct {
	Environment uuid.UUID        `json:"environment"`
	Platform    string           `json:"platform"`
	Hostname    string           `json:"hostname"`
	Executors   int              `json:"executors"`
	Tasks       int              `json:"tasks"`
	Resources   map[string]int64 `json:"resources"`
}

type schedulerList struct {
	Environment *uuid.UUID `arg:"environment"`
	Expired     bool       `arg:"expired"`
	Start       *uuid.UUID `arg:"start"`
	End         *uuid.UUID `arg:"end"`
	Limit       int        `arg:"limit"`
}

type oneSchedulerOfAny struct {
	ID uuid.UUID `arg:"id,required"`
}

type oneScheduler struct {
	inEnvironment
	oneSchedulerOfAny
	Report bool `arg:"report"`
}

type agentOfEnvironment struct {
	inEnvironment
	Agent string `arg:"agent,required"`
}

// schedulers returns the schedulers of the environments that the sender may see, sorted by id.
func (s *server) schedulers(ctx context.Context, of *uuid.UUID) ([]scheduler, error) {
	all, err := s.store.Environments(ctx)
	if err != nil {
		return nil, err
	}
	visible := access.Visible(ctx, all)
	owners, err := s.store.Owners(ctx, visible)
	var out []scheduler
	found := of == nil
	for _, e := range visible {
		found = found || e.ID == *of
		o, owned := owners[e.ID]
		if owned && (of == nil || e.ID == *of) {
			out = append(out, schedulerOf(e.ID, o))
		}
	}
	if err == nil && !found {
		return nil, noEnvironment()
	}
	slices.SortFunc(out, func(a, b scheduler) int { return slices.Compare(a.SID[:], b.SID[:]) })
	return out, err
}

// schedulerOf shows a scheduler. Its id is made of those of the process and the environment, so that it is another one
// after each move.
func schedulerOf(env uuid.UUID, o store.Owner) scheduler {
	return scheduler{
		SID: uuid.NewSHA1(o.Replica, env[:]), Hostname: o.Name, Environment: env, FirstSeen: maybe(&o.Started),
	}
}

// listSchedulers lists those that run. No record is kept of those that have ended, so expired chooses no more.
func (s *server) listSchedulers(ctx context.Context, a schedulerList) (schedulersEnvelope, error) {
	out := schedulersEnvelope{Processes: []schedulerV1{}}
	if a.Limit > store.MaxPage {
		return out, invalid("the parameter limit can not exceed %d", store.MaxPage)
	}
	if a.Start != nil && a.End != nil {
		return out, invalid("only one of start and end can be used at a time")
	}
	limit := a.Limit
	if limit <= 0 {
		limit = store.MaxPage
	}
	all, err := s.schedulers(ctx, a.Environment)
	for _, p := range all {
		if len(out.Processes) == limit || a.Start != nil && slices.Compare(p.SID[:], a.Start[:]) <= 0 ||
			a.End != nil && slices.Compare(p.SID[:], a.End[:]) >= 0 {
			continue
		}
		out.Processes = append(out.Processes, schedulerV1{
			ID: p.SID, SID: p.SID, Hostname: p.Hostname, Environment: p.Environment, FirstSeen: p.FirstSeen,
			Endpoints: []string{},
		})
	}
	return out, err
}

func (s *server) scheduler(ctx context.Context, id uuid.UUID) (scheduler, error) {
	all, err := s.schedulers(ctx, nil)
	if err != nil {
		return scheduler{}, err
	}
	i := slices.IndexFunc(all, func(p scheduler) bool { return p.SID == id })
	if i < 0 {
		return scheduler{}, fault.New("api", fault.NotFound, "there is no agent process "+id.String())
	}
	return all[i], nil
}

func (s *server) getSchedulerReport(ctx context.Context, a oneSchedulerOfAny) (schedulerReport, error) {
	p, err := s.scheduler(ctx, a.ID)
	if err != nil {
		return schedulerReport{}, as404(err, err.Error())
	}
	return s.schedulerReport(ctx, p)
}

func (s *server) schedulerReport(ctx context.Context, p scheduler) (schedulerReport, error) {
	x, err := s.control.Executors(ctx, p.Environment)
	out := schedulerReport{
		Environment: p.Environment, Platform: runtime.GOOS + "-" + runtime.GOARCH, Hostname: p.Hostname,
		Executors: len(x.Processes), Resources: map[string]int64{},
	}
	for _, one := range x.Processes {
		out.Tasks += one.Running
		out.Resources[strconv.Itoa(one.PID)] = one.RSS
	}
	return out, err
}

func (s *server) getScheduler(ctx context.Context, a oneScheduler) (scheduler, error) {
	p, err := s.scheduler(ctx, a.ID)
	if err == nil && p.Environment != a.Env {
		err = fault.New("api", fault.NotFound, "there is no agent process "+a.ID.String())
	}
	if err != nil || !a.Report {
		return p, err
	}
	report, err := s.schedulerReport(ctx, p)
	p.State = &report
	return p, err
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

func (s *server) isEnabled(ctx context.Context, a agentOfEnvironment) (enabled, error) {
	e, err := s.environment(ctx, a.Env)
	if err != nil || e.Halted {
		return enabled{}, err
	}
	owners, err := s.store.Owners(ctx, []intent.Environment{e})
	return enabled{len(owners) > 0}, err
}

// schedulerStatus is what the scheduler knows. It works with the record itself, so that nothing can be discrepant.
type schedulerStatus struct {
	SchedulerState map[string]schedulerState  `json:"scheduler_state"`
	DBState        map[string]schedulerIntent `json:"db_state"`
	ResourceStates map[string]intent.Status   `json:"resource_states"`
	Discrepancies  []struct{}                 `json:"discrepancies"`
}

type schedulerState struct {
	Compliance               intent.Compliance    `json:"compliance"`
	LastHandlerRun           intent.HandlerResult `json:"last_handler_run"`
	Blocked                  intent.Blocked       `json:"blocked"`
	LastDeployed             *timestamp           `json:"last_deployed"`
	LastHandlerRunCompliance *intent.Compliance   `json:"last_handler_run_compliant"`
}

type schedulerIntent struct {
	ResourceID    string         `json:"resource_id"`
	AttributeHash string         `json:"attribute_hash"`
	Attributes    map[string]any `json:"attributes"`
}

func (s *server) getSchedulerStatus(ctx context.Context, a inEnvironment) (schedulerStatus, error) {
	out := schedulerStatus{
		map[string]schedulerState{}, map[string]schedulerIntent{}, map[string]intent.Status{}, []struct{}{},
	}
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return out, err
	}
	if e.Halted {
		return out, fault.New("api", fault.Conflict, "the environment "+e.Name+" is halted: no scheduler runs for it")
	}
	active, err := s.store.ActiveVersion(ctx, a.Env)
	if err != nil || active == nil {
		return out, err
	}
	all, err := s.store.VersionResources(ctx, a.Env, active.Number)
	if err != nil {
		return out, err
	}
	states, err := s.statuses(ctx, a.Env)
	for id, state := range states {
		name := id.String()
		out.SchedulerState[name] = schedulerState{
			Compliance: state.Compliance, LastHandlerRun: state.LastRun, Blocked: state.Blocked,
			LastDeployed: maybe(state.LastRunAt),
		}
		out.ResourceStates[name] = state.Status()
	}
	for _, r := range all {
		name := r.ID.String()
		out.DBState[name] = schedulerIntent{name, r.AttributeHash, withRequires(r.Attributes, r.Requires)}
	}
	return out, err
}

// features are what clients may ask for, by the slice of the server that has them.
var features = map[string]map[string]bool{
	"core.resource": {"resource_discovery": true, "compliance_reporting": true},
}

type oneFeature struct {
	Slice string `arg:"slice_name,required"`
	Name  string `arg:"feature_name,required"`
}

func (s *server) hasFeature(_ context.Context, a oneFeature) (bool, error) {
	has, known := features[a.Slice][a.Name]
	if !known {
		return false, fault.New("api", fault.NotFound, "the slice "+a.Slice+" has no feature "+a.Name)
	}
	return has, nil
}

// serverFeature is a feature in the status of the server.
type serverFeature struct {
	Slice string `json:"slice"`
	Name  string `json:"name"`
	Value bool   `json:"value"`
}

func serverFeatures() (out []serverFeature) {
	for _, slice := range slices.Sorted(maps.Keys(features)) {
		for _, name := range slices.Sorted(maps.Keys(features[slice])) {
			out = append(out, serverFeature{slice, name, features[slice][name]})
		}
	}
	return out
}
