// Package apitest holds a server's verbs in memory, for the tests of the
// doors: the API and the console. It keeps what it is told and publishes the
// events that the real verbs publish; it compiles and deploys nothing.
package apitest

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/control"
)

// Control has the methods of *control.Control that the doors use. Its fields
// may be set before it is used; after that, Do changes them safely.
type Control struct {
	mu     sync.Mutex
	events bus.Bus

	Projs    []intent.Project
	Envs     []*Env
	FileData map[string][]byte
	// Shared are the secrets of projects, Hosts the keys of their SSH servers.
	Shared  map[uuid.UUID]map[string]string
	Hosts   map[uuid.UUID]string
	Origins map[intent.ResourceID][]provenance.Field // of any version
	Now     func() time.Time
	// Down makes Ping fail with it.
	Down error
	// Asked records the verbs that moved something, in order.
	Asked []string
}

// Env is an environment with all that belongs to it.
type Env struct {
	intent.Environment
	Secrets    map[string]string
	Runs       []Run
	Vers       []Ver
	Rows       []intent.ResourceRow
	History    map[intent.ResourceID][]intent.ResourceHistory
	Acts       []intent.Action
	AgentList  []intent.Agent
	Execs      intent.Executors
	Params     []intent.Parameter
	Dries      []Dry
	Drifts     []intent.Drift
	Hooks      []intent.Delivery
	Notices    []intent.Notification
	Discovered []intent.Discovered
	Gone       []intent.Override // overrides that are over
	Acted      []intent.Intervention
	Pulls      []intent.PullRequest
	Work       []intent.Outbox // for the forge
	Git        *intent.GitState
	Commits    []intent.GitCommit
	Blocks     []intent.Block
	Follow     control.Following
}

// Run is a compile with its stages.
type Run struct {
	intent.Compile
	Stages []intent.Stage
}

// Ver is a version with its resources.
type Ver struct {
	intent.Version
	Resources []intent.Resource
}

// Dry is a dry run with what it found.
type Dry struct {
	intent.DryRun
	Diffs []intent.ResourceDiff
}

// New gives an empty one.
func New() *Control {
	return &Control{FileData: map[string][]byte{}, Now: time.Now}
}

// Do changes the data, then publishes the events.
func (c *Control) Do(change func(), events ...bus.Event) {
	c.mu.Lock()
	change()
	c.mu.Unlock()
	for _, e := range events {
		c.events.Publish(e)
	}
}

// Verbs gives what was asked so far.
func (c *Control) Verbs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.Asked)
}

// Bus gives the events.
func (c *Control) Bus() *bus.Bus { return &c.events }

// Ping gives Down.
func (c *Control) Ping(context.Context) error { return c.Down }

// ProgramVersion is that of a test.
func (c *Control) ProgramVersion() string { return "0.0.0-test" }

func (c *Control) publish(env uuid.UUID, topic bus.Topic, id string) {
	c.events.Publish(bus.Event{Environment: env, Topic: topic, ID: id})
}

func missing(what string) error {
	return fault.New("apitest", fault.NotFound, "there is no such "+what)
}

// env finds an environment; c.mu is held.
func (c *Control) env(id uuid.UUID) (*Env, error) {
	for _, e := range c.Envs {
		if e.ID == id {
			return e, nil
		}
	}
	return nil, missing("environment")
}

// CreateProject is a verb.
func (c *Control) CreateProject(_ context.Context, p intent.Project) (intent.Project, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.TrimSpace(p.Name) == "" {
		return p, fault.New("apitest", fault.Invalid, "a project needs a name")
	}
	for _, x := range c.Projs {
		if x.Name == p.Name {
			return p, fault.New("apitest", fault.Conflict, "a project called "+p.Name+" exists already")
		}
	}
	if p.ID == uuid.Nil {
		p.ID = uuid.New()
	}
	c.Projs = append(c.Projs, p)
	return p, nil
}

// Projects is a verb.
func (c *Control) Projects(context.Context) ([]intent.Project, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(
		slices.Values(c.Projs),
		func(a, b intent.Project) int { return cmp.Compare(a.Name, b.Name) },
	), nil
}

// Project is a verb.
func (c *Control) Project(_ context.Context, id uuid.UUID) (intent.Project, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.Projs {
		if p.ID == id {
			return p, nil
		}
	}
	return intent.Project{}, missing("project")
}

// RenameProject is a verb.
func (c *Control) RenameProject(_ context.Context, id uuid.UUID, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.Projs {
		if c.Projs[i].ID == id {
			c.Projs[i].Name = name
			return nil
		}
	}
	return missing("project")
}

// DeleteProject is a verb.
func (c *Control) DeleteProject(_ context.Context, id uuid.UUID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.Projs)
	c.Projs = slices.DeleteFunc(c.Projs, func(p intent.Project) bool { return p.ID == id })
	c.Envs = slices.DeleteFunc(c.Envs, func(e *Env) bool { return e.ProjectID == id })
	if len(c.Projs) == before {
		return missing("project")
	}
	return nil
}

// CreateEnvironment is a verb.
func (c *Control) CreateEnvironment(_ context.Context, n control.NewEnvironment) (intent.Environment, error) {
	e := n.Environment
	if strings.TrimSpace(e.Name) == "" {
		return e, fault.New("apitest", fault.Invalid, "an environment needs a name")
	}
	c.mu.Lock()
	for _, x := range c.Envs {
		if x.Name == e.Name && x.ProjectID == e.ProjectID {
			c.mu.Unlock()
			return e, fault.New(
				"apitest",
				fault.Conflict,
				"an environment called "+e.Name+" exists already in this project",
			)
		}
	}
	if e.ID == uuid.Nil {
		e.ID = uuid.New()
	}
	e.Created = c.Now()
	for _, p := range c.Projs {
		if p.ID == e.ProjectID {
			e.ProjectName = p.Name
		}
	}
	c.Envs = append(c.Envs, &Env{Environment: e, Secrets: maps.Clone(n.Secrets)})
	c.mu.Unlock()
	c.publish(e.ID, bus.Environment, "")
	return e, nil
}

// Environments is a verb.
func (c *Control) Environments(context.Context) ([]intent.Environment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []intent.Environment
	for _, e := range c.Envs {
		out = append(out, e.Environment)
	}
	slices.SortFunc(out, func(a, b intent.Environment) int {
		return cmp.Or(cmp.Compare(a.ProjectName, b.ProjectName), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Environment is a verb.
func (c *Control) Environment(_ context.Context, id uuid.UUID) (intent.Environment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Environment{}, err
	}
	out := e.Environment
	out.Settings = maps.Clone(e.Settings)
	return out, nil
}

// change alters an environment and tells.
func (c *Control) change(id uuid.UUID, verb string, do func(*Env) error) error {
	c.mu.Lock()
	e, err := c.env(id)
	if err == nil {
		if verb != "" {
			c.Asked = append(c.Asked, verb)
		}
		err = do(e)
	}
	c.mu.Unlock()
	if err == nil {
		c.publish(id, bus.Environment, "")
	}
	return err
}

// UpdateEnvironment is a verb.
func (c *Control) UpdateEnvironment(_ context.Context, n intent.Environment) (intent.Environment, error) {
	err := c.change(n.ID, "", func(e *Env) error {
		n.Settings, n.Halted, n.Created, n.ProjectName = e.Settings, e.Halted, e.Created, e.ProjectName
		e.Environment = n
		return nil
	})
	return n, err
}

func (c *Control) unprotected(e *Env) error {
	if e.Bool("protected_environment") {
		return fault.New("apitest", fault.Forbidden, "the environment "+e.Name+" is protected")
	}
	return nil
}

// DeleteEnvironment is a verb.
func (c *Control) DeleteEnvironment(_ context.Context, id uuid.UUID) error {
	return c.change(id, "delete", func(e *Env) error {
		if err := c.unprotected(e); err != nil {
			return err
		}
		c.Envs = slices.DeleteFunc(c.Envs, func(x *Env) bool { return x == e })
		return nil
	})
}

// ClearEnvironment is a verb.
func (c *Control) ClearEnvironment(_ context.Context, id uuid.UUID) error {
	return c.change(id, "clear", func(e *Env) error {
		if err := c.unprotected(e); err != nil {
			return err
		}
		*e = Env{Environment: e.Environment, Secrets: e.Secrets}
		return nil
	})
}

// Halt is a verb.
func (c *Control) Halt(_ context.Context, id uuid.UUID) error {
	return c.change(id, "halt", func(e *Env) error { e.Halted = true; return nil })
}

// Resume is a verb.
func (c *Control) Resume(_ context.Context, id uuid.UUID) error {
	return c.change(id, "resume", func(e *Env) error { e.Halted = false; return nil })
}

// SetSetting is a verb.
func (c *Control) SetSetting(_ context.Context, id uuid.UUID, name string, value any) error {
	def, ok := intent.SettingNamed(name)
	if !ok {
		return fault.New("apitest", fault.NotFound, "there is no setting "+name)
	}
	converted, err := def.Convert(value)
	if err != nil {
		return fault.Wrap("apitest", fault.Invalid, err)
	}
	return c.change(id, "", func(e *Env) error {
		if by, ok := e.Protected[name]; ok {
			return fault.New("apitest", fault.Forbidden, "the setting "+name+" is decided by "+by)
		}
		if e.Settings == nil {
			e.Settings = map[string]any{}
		}
		e.Settings[name] = converted
		return nil
	})
}

// ProtectSettings is a verb.
func (c *Control) ProtectSettings(ctx context.Context, id uuid.UUID, settings map[string]any, by string) error {
	if err := c.change(id, "", func(e *Env) error { e.Protected = map[string]string{}; return nil }); err != nil {
		return err
	}
	for name, value := range settings {
		if err := c.SetSetting(ctx, id, name, value); err != nil {
			return err
		}
	}
	return c.change(id, "", func(e *Env) error {
		for name := range settings {
			e.Protected[name] = by
		}
		return nil
	})
}

// DeleteSetting is a verb.
func (c *Control) DeleteSetting(_ context.Context, id uuid.UUID, name string) error {
	if _, ok := intent.SettingNamed(name); !ok {
		return fault.New("apitest", fault.NotFound, "there is no setting "+name)
	}
	return c.change(id, "", func(e *Env) error { delete(e.Settings, name); return nil })
}

// SetSecret is a verb.
func (c *Control) SetSecret(_ context.Context, id uuid.UUID, name, value string) error {
	return c.change(id, "secret "+name, func(e *Env) error {
		if e.Secrets == nil {
			e.Secrets = map[string]string{}
		}
		e.Secrets[name] = value
		return nil
	})
}

// SecretNames is a verb.
func (c *Control) SecretNames(_ context.Context, id uuid.UUID) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(e.Secrets)), nil
}

// SetProjectSecret is a verb.
func (c *Control) SetProjectSecret(ctx context.Context, id uuid.UUID, name, value string) error {
	if _, err := c.Project(ctx, id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Shared == nil {
		c.Shared = map[uuid.UUID]map[string]string{}
	}
	if c.Shared[id] == nil {
		c.Shared[id] = map[string]string{}
	}
	if c.Shared[id][name] = value; value == "" {
		delete(c.Shared[id], name)
	}
	c.Asked = append(c.Asked, "project secret "+name)
	return nil
}

// ProjectSecretNames is a verb.
func (c *Control) ProjectSecretNames(ctx context.Context, id uuid.UUID) ([]string, error) {
	if _, err := c.Project(ctx, id); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.Shared[id])), nil
}

// KnownHosts is a verb.
func (c *Control) KnownHosts(ctx context.Context, id uuid.UUID) (string, error) {
	if _, err := c.Project(ctx, id); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Hosts[id], nil
}

// SetKnownHosts is a verb.
func (c *Control) SetKnownHosts(ctx context.Context, id uuid.UUID, lines string) error {
	if err := intent.CheckKnownHosts(lines); err != nil {
		return fault.Wrap("apitest", fault.Invalid, err)
	}
	if _, err := c.Project(ctx, id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Hosts == nil {
		c.Hosts = map[uuid.UUID]string{}
	}
	c.Hosts[id] = lines
	return nil
}

// RequestCompile is a verb.
func (c *Control) RequestCompile(_ context.Context, id uuid.UUID, r control.CompileRequest) (uuid.UUID, string, error) {
	c.mu.Lock()
	e, err := c.env(id)
	if err != nil {
		c.mu.Unlock()
		return uuid.Nil, "", err
	}
	if !e.Bool("server_compile") {
		c.mu.Unlock()
		return uuid.Nil, "Skipping compile because server compile is not enabled for this environment.", nil
	}
	run := Run{Compile: intent.Compile{
		ID: uuid.New(), Environment: id, Requested: c.Now(), Trigger: r.Trigger, Metadata: r.Metadata,
		Update: r.Update, Reinstall: r.Reinstall, Export: true, Variables: r.Variables,
	}}
	e.Runs = append(e.Runs, run)
	c.Asked = append(c.Asked, "compile update="+strconv.FormatBool(r.Update)+" by "+r.Trigger.Type)
	c.mu.Unlock()
	c.publish(id, bus.Compile, run.ID.String())
	return run.ID, "", nil
}

// IsCompiling is a verb.
func (c *Control) IsCompiling(ctx context.Context, id uuid.UUID) (bool, error) {
	open, err := c.CompileQueue(ctx, id)
	if err != nil || len(open) == 0 {
		return false, err
	}
	e, err := c.Environment(ctx, id)
	return !e.Halted, err
}

// CompileQueue is a verb.
func (c *Control) CompileQueue(_ context.Context, id uuid.UUID) ([]intent.Compile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	var out []intent.Compile
	for _, r := range e.Runs {
		if r.Completed == nil {
			out = append(out, r.Compile)
		}
	}
	return out, nil
}

// Compile is a verb.
func (c *Control) Compile(_ context.Context, id uuid.UUID) (intent.Compile, []intent.Stage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.Envs {
		for _, r := range e.Runs {
			if r.ID == id {
				return r.Compile, slices.Clone(r.Stages), nil
			}
		}
	}
	return intent.Compile{}, nil, missing("compile")
}

// Release is a verb.
func (c *Control) Release(_ context.Context, id uuid.UUID, number int) error {
	err := c.change(id, "release "+strconv.Itoa(number), func(e *Env) error {
		at := slices.IndexFunc(e.Vers, func(v Ver) bool { return v.Number == number })
		if at < 0 {
			return missing("version")
		}
		if e.Vers[at].Released != nil {
			return fault.New("apitest", fault.Conflict, "version "+strconv.Itoa(number)+" is already released")
		}
		if v := e.Vers[at]; v.Held() && v.Confirmed == nil {
			held := &intent.HeldError{Version: number, Hold: *v.Hold}
			return fault.Wrap("apitest", fault.Conflict, held).Hint(held.Advice())
		}
		for i := range e.Vers {
			if e.Vers[i].Status == intent.VersionActive {
				e.Vers[i].Status = intent.VersionRetired
			}
		}
		now := c.Now()
		e.Vers[at].Released, e.Vers[at].Status = &now, intent.VersionActive
		return nil
	})
	if err == nil {
		c.publish(id, bus.Version, strconv.Itoa(number))
	}
	return err
}

func (c *Control) version(id uuid.UUID, number int) (*Ver, error) {
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	for i := range e.Vers {
		if e.Vers[i].Number == number {
			return &e.Vers[i], nil
		}
	}
	return nil, missing("version")
}

// Version is a verb.
func (c *Control) Version(_ context.Context, id uuid.UUID, number int) (intent.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.version(id, number)
	if err != nil {
		return intent.Version{}, err
	}
	return v.Version, nil
}

// ActiveVersion is a verb.
func (c *Control) ActiveVersion(_ context.Context, id uuid.UUID) (*intent.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	for _, v := range e.Vers {
		if v.Status == intent.VersionActive {
			return &v.Version, nil
		}
	}
	return nil, nil
}

// DeleteVersion is a verb.
func (c *Control) DeleteVersion(_ context.Context, id uuid.UUID, number int) error {
	return c.change(id, "delete version "+strconv.Itoa(number), func(e *Env) error {
		before := len(e.Vers)
		e.Vers = slices.DeleteFunc(
			e.Vers,
			func(v Ver) bool { return v.Number == number && v.Status != intent.VersionActive },
		)
		if len(e.Vers) == before {
			return missing("version")
		}
		return nil
	})
}

// VersionResources is a verb.
func (c *Control) VersionResources(_ context.Context, id uuid.UUID, number int) ([]intent.Resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.version(id, number)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v.Resources), nil
}

// VersionResource is a verb.
func (c *Control) VersionResource(
	ctx context.Context,
	id uuid.UUID,
	number int,
	rid intent.ResourceID,
) (intent.Resource, error) {
	all, err := c.VersionResources(ctx, id, number)
	if err != nil {
		return intent.Resource{}, err
	}
	for _, r := range all {
		if r.ID == rid {
			return r, nil
		}
	}
	return intent.Resource{}, missing("resource in this version")
}

// Explain is a verb: it knows what is in Origins.
func (c *Control) Explain(
	ctx context.Context,
	id uuid.UUID,
	number int,
	rid intent.ResourceID,
) (provenance.Explanation, error) {
	r, err := c.VersionResource(ctx, id, number, rid)
	if err != nil {
		return provenance.Explanation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fields, ok := c.Origins[rid]
	if !ok {
		return provenance.Explanation{}, missing("provenance")
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(r.Attributes, &values); err != nil {
		return provenance.Explanation{}, err
	}
	return provenance.Explanation{
		Subject:    rid.String(),
		Version:    number,
		Commit:     "c",
		Attributes: provenance.WithValues(fields, values),
	}, nil
}

// PutFile is a verb.
func (c *Control) PutFile(_ context.Context, content []byte) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := sha1.Sum(content)
	hash := hex.EncodeToString(sum[:])
	c.FileData[hash] = slices.Clone(content)
	return hash, nil
}

// File is a verb.
func (c *Control) File(_ context.Context, hash string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.FileData[hash]
	if !ok {
		return nil, missing("file")
	}
	return content, nil
}

// MissingFiles is a verb.
func (c *Control) MissingFiles(_ context.Context, hashes []string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, h := range hashes {
		if _, ok := c.FileData[h]; !ok {
			out = append(out, h)
		}
	}
	return out, nil
}
