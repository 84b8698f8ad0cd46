package control_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/process"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// parts are a fake of everything but the store: they do what a test tells them.
type parts struct {
	asked    int                 // for the tip
	tipErr   error               // of asking for it once
	changed  map[string][]string // paths by "from to"
	mu       sync.Mutex
	tip      string
	pushed   []string // commits that can be fetched by their hash
	now      func() time.Time
	compiles int // that may run at a time
	running  int // compiles that run, and the most that did
	most     int
	order    []string // environments in the order in which they compiled
	tag      string   // end of the name of the newest release
	fetchErr error
	fetched  int
	checked  []string            // commits checked out
	source   gitsync.Source      // of the last fetch
	hold     chan struct{}       // compiles wait for it when it is set
	holding  chan struct{}       // gets a value when a compile waits
	compiled func(string) func() // is called with the project when a compile begins, and what it returns when it ends
	venv     func()              // is called while the virtual environment is made
	installs func(build.Output) (string, error)
	released []int // versions that the deployer heard of
	watched  map[intent.EnvironmentID]bool
	broken   bool              // the model has errors
	says     string            // the text of the error of a broken model
	settings map[string]any    // that project.yml asks for
	exported []export.Resource // instead of one resource
	unknowns []intent.Unknown
	modules  map[string]string // that the model uses
	view     string            // what identifies the clusters that a model sees
	busy     bool              // a job runs for a cluster
	saw      []string          // the clusters that compiles saw
	told     []string          // what deployers were told
	descends map[string]string // what commits descend from in spite of their names
	blaming  func(ctx context.Context, path string) error
}

func (p *parts) Has(gitsync.Source, string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetched > 0
}

func (p *parts) Tidy(_ context.Context, used []gitsync.Use, since time.Time) error {
	urls := []string{}
	for _, u := range used {
		urls = append(
			urls,
			strings.TrimSpace(
				fmt.Sprint(u.Source.URL, " ", u.Source.Only, " ", u.Source.Depth, " ", strings.Join(u.Commits, ",")),
			),
		)
	}
	slices.Sort(urls)
	p.note(fmt.Sprint("mirrors ", urls, " ", time.Since(since).Round(time.Hour)))
	return nil
}
func (p *parts) Fetch(_ context.Context, s gitsync.Source) (intent.Revision, gitsync.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fetchErr != nil {
		return intent.Revision{}, gitsync.Report{Command: "git fetch"}, p.fetchErr
	}
	p.fetched++
	p.source = s
	if tag, ok := strings.CutPrefix(s.Branch, "semver:"); ok {
		return intent.Revision{
				Commit: p.tip,
				Branch: tag + p.tag,
				Author: "Eve",
				Time:   time.Unix(0, 0),
			}, gitsync.Report{
				Command: "git fetch",
			}, nil
	}
	if slices.Contains(p.pushed, s.Branch) {
		return intent.Revision{
				Commit:  s.Branch,
				Branch:  s.Branch,
				Author:  "Eve",
				Subject: "s",
				Time:    time.Unix(0, 0),
			}, gitsync.Report{
				Command: "git fetch",
			}, nil
	}
	if s.Branch != "main" && s.Branch != "" {
		return intent.Revision{
				Commit: "of-" + s.Branch,
				Branch: s.Branch,
				Author: "Eve",
				Time:   time.Unix(0, 0),
			}, gitsync.Report{
				Command: "git fetch",
			}, nil
	}
	return intent.Revision{
			Commit:  p.tip,
			Branch:  "main",
			Author:  "Eve",
			Subject: "s",
			Time:    time.Unix(0, 0),
		}, gitsync.Report{
			Command: "git fetch",
		}, nil
}

// Verify refuses a commit that does not begin like the one that is deployed.
func (p *parts) Verify(
	_ context.Context,
	_ gitsync.Source,
	rev intent.Revision,
	policy intent.GitPolicy,
) (intent.Signer, error) {
	if policy.Base != "" && !policy.Rewrites && strings.HasPrefix(rev.Commit, "rewritten") &&
		p.descends[rev.Commit] != policy.Base {
		return intent.Signer{}, &intent.Refusal{
			Kind:    intent.GitRewritten,
			Commit:  rev.Commit,
			Message: "it does not descend from " + policy.Base,
			Advice:  "accept it",
		}
	}
	if policy.Verify != "off" && strings.HasPrefix(rev.Commit, "unsigned") {
		return intent.Signer{}, &intent.Refusal{
			Kind:    intent.GitUnsigned,
			Commit:  rev.Commit,
			Message: "it is not signed",
			Advice:  "sign it",
		}
	}
	if policy.Verify != "off" {
		return intent.Signer{Name: "Ada", Key: "SHA256:x"}, nil
	}
	return intent.Signer{}, nil
}

func (p *parts) Checkout(_ context.Context, _ gitsync.Source, commit, dir string) (gitsync.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = append(p.checked, commit+map[bool]string{true: " preview"}[strings.Contains(dir, "preview")])
	return gitsync.Report{Command: "git checkout " + commit}, nil
}

func (p *parts) Tip(context.Context, gitsync.Source) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	err := p.tipErr
	p.tipErr = nil
	return p.tip, err
}

func (p *parts) Changed(_ context.Context, _ gitsync.Source, from, to string, visit func(string) bool) error {
	p.mu.Lock()
	paths, known := p.changed[from+" "+to]
	p.mu.Unlock()
	if !known {
		return fault.New("fake", fault.NotFound, "there is no such commit")
	}
	for _, path := range paths {
		if !visit(path) {
			break
		}
	}
	return nil
}

func (p *parts) MergePull(
	_ context.Context,
	_ gitsync.Source,
	q gitsync.PullRequest,
) (intent.Revision, gitsync.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return intent.Revision{
			Commit: "merge-of-" + q.Head,
			Branch: q.Base,
			Author: "Mallory",
			Time:   time.Unix(0, 0),
		}, gitsync.Report{
			Command: "git merge-tree",
		}, p.fetchErr
}

func (p *parts) Revert(_ context.Context, _ gitsync.Source, commit string) (string, []gitsync.Change, error) {
	return p.tip, []gitsync.Change{{Path: "main.cf", Content: []byte("before " + commit)}}, nil
}

func (p *parts) Plan(context.Context, gitsync.Source, gitsync.Write) (gitsync.Plan, error) {
	return gitsync.Plan{Branch: "main", Tip: p.tip}, nil
}

func (p *parts) Write(context.Context, gitsync.Source, gitsync.Write) (string, error) {
	return p.tip, nil
}

// Blame says that Eve wrote every line of main.cf.
func (p *parts) Blame(ctx context.Context, _ gitsync.Source, commit, path string) (provenance.Blame, error) {
	if p.blaming != nil {
		if err := p.blaming(ctx, path); err != nil {
			return nil, err
		}
	}
	if path != "main.cf" {
		return nil, fault.New("fake", fault.NotFound, "there is no such file")
	}
	return provenance.Blame{{ID: commit, Author: "Eve"}, {ID: commit, Author: "Eve"}, {ID: commit, Author: "Eve"}}, nil
}

func (p *parts) Forget(intent.EnvironmentID) {}
func (p *parts) Venv(context.Context, build.Job, build.Output) (string, error) {
	if p.venv != nil {
		p.venv()
	}
	return "", nil
}
func (p *parts) Install(_ context.Context, _ build.Job, out build.Output) (string, error) {
	if p.installs != nil {
		return p.installs(out)
	}
	return "", nil
}

func (p *parts) Compile(
	ctx context.Context,
	job build.Job,
	out build.Output,
) (*export.Document, string, error) {
	p.mu.Lock()
	hold, holding, broken, settings, exported, unknowns := p.hold, p.holding, p.broken, p.settings, p.exported,
		p.unknowns
	modules := p.modules
	for _, name := range slices.Sorted(maps.Keys(job.Clusters)) {
		p.saw = append(p.saw, name+" "+string(job.Clusters[name]))
	}
	if !job.Preview {
		p.running++
		p.most = max(p.most, p.running)
		p.order = append(p.order, job.Environment.Name)
	}
	compiled := p.compiled
	p.mu.Unlock()
	if compiled != nil {
		defer compiled(job.Environment.ProjectName)()
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !job.Preview {
			p.running--
		}
	}()
	if hold != nil {
		holding <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
	out("compiling\n", "")
	if broken {
		doc := &export.Document{}
		if p.says != "" {
			doc.Diagnostics = []diag.Diagnostic{{Message: p.says}}
		}
		return doc, "ordain compile", nil
	}
	if exported != nil {
		return &export.Document{
			Success:     true,
			Resources:   exported,
			Partial:     job.Compile.Partial,
			RemovedSets: job.Compile.RemovedSets,
		}, "ordain compile", nil
	}
	id := intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: "1"}
	table, entry := provenance.NewBuilder(), provenance.Entry{}
	for _, file := range []string{"main.cf", "/elsewhere/std/_init.cf"} {
		statement := provenance.Statement{Kind: provenance.Argument, Place: provenance.Place{File: file, Line: 3}}
		entry.Set(provenance.Mark{
			Name: table.Text("commit"), Statement: table.Statement(statement), Step: provenance.TopLevel,
		})
	}
	table.Add(id.String(), &entry)
	return &export.Document{
		Success:    true,
		Unknowns:   unknowns,
		Modules:    modules,
		Provenance: table.Table(),
		Settings:   settings,
		Resources: []export.Resource{{
			ID: id, Attributes: []byte(fmt.Sprintf(`{"commit":%q}`, job.Compile.Revision.Commit)),
			AttributeHash: job.Compile.Revision.Commit,
		}},
	}, "ordain compile", nil
}

func (p *parts) newDeployer(intent.Environment) (keeper.Deployer, error) { return deployer{p}, nil }

// watcher remembers what it is to watch. Its moves are those of the test.
type watcher struct {
	*parts
	cfg gitsync.WatcherConfig
}

func (w *watcher) Start(context.Context) error { return nil }
func (w *watcher) Stop()                       {}

func (w *watcher) Watch(env intent.EnvironmentID, _ gitsync.Source, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[env] = true
}

func (w *watcher) Forget(env intent.EnvironmentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, env)
}

func (w *watcher) Heard(_ intent.EnvironmentID, commits []string) {
	w.note("heard " + strings.Join(commits, " "))
}

type deployer struct{ p *parts }

func (d deployer) Start(context.Context) error { return nil }
func (d deployer) Stop()                       {}
func (d deployer) VersionReleased(n int) {
	d.p.note(fmt.Sprint("released ", n))
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.released = append(d.p.released, n)
}
func (d deployer) Deploy(intent.Request, intent.DeployRequest) {}
func (d deployer) Wait(context.Context) error                  { return nil }
func (d deployer) SetPaused(string, bool)                      {}
func (d deployer) Unpark([]intent.ResourceID)                  {}
func (d deployer) Changed(intent.Environment)                  {}
func (d deployer) DryRun(id intent.ActionID)                   { d.p.note("dryrun " + id.String()) }
func (d deployer) CancelDryRun(id intent.ActionID)             { d.p.note("cancel " + id.String()) }
func (d deployer) RemoveVenvs()                                { d.p.note("remove venvs") }
func (d deployer) RefreshFacts(ids []intent.ResourceID)        { d.p.note(fmt.Sprint("facts ", ids)) }
func (d deployer) Executors() intent.Executors                 { return intent.Executors{Here: true} }
func (d deployer) Queue(context.Context, intent.QueueQuestion) intent.Queue {
	return intent.Queue{Here: true}
}

// note remembers what a deployer was told.
func (p *parts) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, what)
}

func (p *parts) toldOf() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// stage is a control, with its keepers and forges, on a real store with fake parts.
type stage struct {
	*control.Control
	t       *testing.T
	parts   *parts
	store   *store.Store
	events  *bus.Bus
	key     *secret.Key
	keyFile string
	layout  *layout.Layout
	keepers *keeper.Registry
	forge   *forge.Service
	process *process.Engine
	watcher *watcher
	env     intent.EnvironmentID
	log     *journal
}

// journal keeps what a control logs.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Split(strings.TrimSpace(j.text.String()), "\n")
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	key, err := secret.OpenKey(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	folders, err := layout.New(layout.Config{
		StateDir: filepath.Join(dir, "state"), LogDir: filepath.Join(dir, "log"), CacheDir: filepath.Join(dir, "cache"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t:     t,
		log:   &journal{},
		store: storetest.Open(t),
		key:   key, keyFile: keyFile,
		layout: folders,
		parts:  &parts{tip: "c1", watched: map[intent.EnvironmentID]bool{}},
	}
	s.restart()
	project, err := s.CreateProject(t.Context(), intent.Project{Name: "p"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.CreateEnvironment(
		t.Context(),
		control.NewEnvironment{
			Environment: intent.Environment{
				ProjectID: project.ID,
				Name:      "e",
				Source:    intent.Source{URL: "/repo", Branch: "main"},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.env = e.ID
	return s
}

// build makes the parts of a server around the record; it starts none of them.
func (s *stage) build() {
	s.t.Helper()
	events, log := &bus.Bus{}, slog.New(slog.NewTextHandler(s.log, nil))
	sources := source.NewOpener(s.store, s.key)
	forges := &forge.Opener{Sources: sources, Version: "test"}
	now := s.parts.now
	if now == nil {
		now = time.Now
	}
	var err error
	s.events = events
	s.keepers, err = keeper.New(keeper.Config{
		Store: s.store, Bus: events, Logger: log, Layout: s.layout, Git: s.parts, Builder: s.parts,
		Sources: sources, Forges: forges, NewDeployer: s.parts.newDeployer, Version: "test",
		Compiles: s.parts.compiles, Now: now, Clusters: s.parts,
		NewWatcher: func(cfg gitsync.WatcherConfig) (keeper.Watcher, error) {
			s.watcher = &watcher{parts: s.parts, cfg: cfg}
			return s.watcher, nil
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.forge = forge.NewService(forge.Config{
		Store: s.store, Bus: events, Logger: log, Git: s.parts, Sources: sources, Forges: forges,
		Keepers: s.keepers, Now: now,
	})
	s.process, err = process.New(process.Config{
		Record: s.store, Bus: events, Logger: log, Definitions: []process.Definition{s.forge.Process()},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Control, err = control.New(control.Config{
		Store: s.store, Bus: events, Logger: log, Git: s.parts, Sources: sources, Keepers: s.keepers,
		Forge: s.forge, Now: now,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.Control.Close)
}

// restart starts a new server on the record.
func (s *stage) restart() {
	s.t.Helper()
	s.build()
	for _, part := range []service.Service{s.keepers, s.forge, s.process} {
		if err := part.Start(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(part.Stop)
	}
}

// Stop stops the server.
func (s *stage) Stop() {
	s.process.Stop()
	s.forge.Stop()
	s.keepers.Stop()
}

// SourceMoved has the watcher report that a branch points to a commit.
func (s *stage) SourceMoved(ctx context.Context, env intent.EnvironmentID, commit, kind, message string) error {
	return s.watcher.cfg.OnMove(ctx, gitsync.Move{Environment: env, Commit: commit, Kind: kind, Message: message})
}

func (s *stage) request(kind string) intent.CompileID {
	s.t.Helper()
	id, warning, err := s.RequestCompile(s.t.Context(), s.env,
		control.CompileRequest{Update: true, Trigger: intent.Trigger{Type: kind}})
	if err != nil || warning != "" {
		s.t.Fatal(err, warning)
	}
	return id
}

// done waits for the end of a compile.
func (s *stage) done(id intent.CompileID) (intent.Compile, []string) {
	s.t.Helper()
	moves := s.events.Subscribe(nil)
	defer moves.Close()
	for {
		c, stages, err := s.store.Compile(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if c.Completed != nil {
			var names []string
			for _, st := range stages {
				names = append(names, st.Name)
			}
			return c, names
		}
		select {
		case <-moves.Events():
		case <-time.After(time.Minute):
			s.t.Fatal("the compile does not end")
		}
	}
}

// A request goes through every stage in order, leaves a version with its
// provenance, and the deployer hears of the release.
func TestARequestBecomesTheIntent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c, names := s.done(s.request("api"))
	want := []string{
		intent.StageInit,
		intent.StageClone,
		intent.StageCheckout,
		intent.StageVenv,
		intent.StageInstall,
		intent.StageCompile,
		intent.StageExport,
		intent.StageRelease,
	}
	if !slices.Equal(names, want) {
		t.Errorf("the stages were %q, want %q", names, want)
	}
	if !*c.Success || *c.Version != 1 || c.Revision.Commit != "c1" {
		t.Errorf("the report is %+v", c)
	}
	v, err := s.store.ActiveVersion(t.Context(), s.env)
	if err != nil || v.Number != 1 || v.Provenance.Commit != "c1" || v.Provenance.Compile != c.ID {
		t.Errorf("the active version is %+v, %v", v, err)
	}
	if !slices.Equal(s.parts.released, []int{1}) {
		t.Errorf("the deployer heard of %v", s.parts.released)
	}
	if told := s.parts.toldOf(); !slices.Equal(told, []string{"released 1"}) {
		t.Errorf("the deployer was told %q", told)
	}
}

// Who decided a value is stored with the version, and told with the commit of
// the line; of a file outside of the repository there is none.
func TestWhoDecidedAValue(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	note := intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: "1"}
	got, err := s.Explain(t.Context(), s.env, 1, note)
	if err != nil || len(got.Attributes) != 1 || string(got.Attributes[0].Value) != `"c1"` || got.Commit != "c1" {
		t.Fatalf("%+v, %v", got, err)
	}
	from := got.Attributes[0].Settings
	if len(from) != 2 || from[0].Commit == nil || from[0].Commit.Author != "Eve" || from[1].Commit != nil {
		t.Errorf("%+v", from)
	}
	note.Value = "2"
	if _, err := s.Explain(t.Context(), s.env, 1, note); !fault.Is(err, fault.NotFound) {
		t.Errorf("a resource that is not there: %v", err)
	}
}

// A failure in any stage ends the run there, and the version that was active
// stays; the next run goes well again.
func TestAFailureChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.parts.mu.Lock()
	s.parts.fetchErr = fault.New("x", fault.Unauthorized, "the remote wants credentials")
	s.parts.mu.Unlock()
	c, names := s.done(s.request("api"))
	if *c.Success || names[len(names)-1] != intent.StageFetch {
		t.Errorf("a failed fetch: %+v %q", c, names)
	}
	s.parts.mu.Lock()
	s.parts.fetchErr, s.parts.broken, s.parts.tip = nil, true, "c2"
	s.parts.mu.Unlock()
	c, names = s.done(s.request("api"))
	if *c.Success || c.Version != nil || names[len(names)-1] != intent.StageCompile {
		t.Errorf("a broken model: %+v %q", c, names)
	}
	v, err := s.store.ActiveVersion(t.Context(), s.env)
	if err != nil || v.Number != 1 {
		t.Errorf("the active version became %+v, %v", v, err)
	}
}

// Notices of a commit that is compiled already start nothing; a person's
// request does.
func TestKnownCommitsAreNotCompiledAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	c, names := s.done(s.request("webhook"))
	if !*c.Success || c.Version != nil || len(names) != 2 {
		t.Errorf("a webhook without news led to %+v %q", c, names)
	}
	if err := s.SourceMoved(t.Context(), s.env, "c1", "poll", ""); err != nil {
		t.Fatal(err)
	}
	if queue, err := s.store.OpenCompiles(t.Context(), s.env); err != nil || len(queue) != 0 {
		t.Errorf("a move to the known commit asked for %v, %v", queue, err)
	}
	if c, _ := s.done(s.request("console")); c.Version == nil || *c.Version != 2 {
		t.Errorf("a person's request led to %+v", c)
	}
}

// The server stops while a compile runs, and the branch moves meanwhile: the
// compile starts over with the commit that it had chosen, so that a version
// is never a mixture of two.
func TestInterruptedCompileKeepsItsCommit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	hold, holding := make(chan struct{}), make(chan struct{}, 8)
	s.parts.hold, s.parts.holding = hold, holding
	id := s.request("api")
	<-holding
	s.Stop()
	s.parts.mu.Lock()
	s.parts.tip, s.parts.hold = "c2", nil
	s.parts.mu.Unlock()
	s.restart()
	c, names := s.done(id)
	if !*c.Success || c.Revision.Commit != "c1" || slices.Index(names[1:], intent.StageInit) < 0 {
		t.Errorf("after the restart: %+v %q", c, names)
	}
	if got := s.parts.checked; got[len(got)-1] != "c1" {
		t.Errorf("checked out %q", got)
	}
}

// Requests that wait while one runs are answered by one run.
func TestABurstIsOneCompile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	hold, holding := make(chan struct{}), make(chan struct{}, 8)
	s.parts.hold, s.parts.holding = hold, holding
	first := s.request("api")
	<-holding
	var burst []intent.CompileID
	for range 5 {
		burst = append(burst, s.request("api"))
	}
	close(hold)
	s.done(first)
	var versions []int
	for _, id := range burst {
		c, _ := s.done(id)
		versions = append(versions, *c.Version)
	}
	if !slices.Equal(versions, []int{2, 2, 2, 2, 2}) {
		t.Errorf("five requests became the versions %v", versions)
	}
}

// A halted environment records requests and runs them when it is resumed.
func TestHaltHoldsCompiles(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.Halt(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	id := s.request("api")
	if compiling, err := s.IsCompiling(t.Context(), s.env); err != nil || compiling {
		t.Errorf("a halted environment compiles: %v %v", compiling, err)
	}
	if err := s.Resume(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	s.done(id)
}

// Bad input is refused at the door, and credentials never stay in a URL.
func TestTheDoor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	e, err := s.store.Environment(ctx, s.env)
	if err != nil {
		t.Fatal(err)
	}
	e.Source.URL = "http://user:pw@forge/repo.git"
	if e, err = s.UpdateEnvironment(ctx, e); err != nil || e.Source.URL != "http://forge/repo.git" {
		t.Errorf("the stored source is %+v, %v", e.Source, err)
	}
	e.Source.URL = "gopher://forge/repo"
	_, errURL := s.UpdateEnvironment(ctx, e)
	_, errName := s.CreateProject(ctx, intent.Project{Name: "  "})
	_, errTaken := s.CreateProject(ctx, intent.Project{Name: "p"})
	_, errDiff := s.DiffVersions(ctx, s.env, 2, 1)
	_, errNone := s.Deploy(ctx, s.env, true, nil)
	_, errResource := s.DeployResource(ctx, s.env,
		intent.ResourceID{Type: "a::B", Agent: "x", Attribute: "y", Value: "z"}, false)
	for name, c := range map[string]struct {
		err  error
		kind fault.Kind
	}{
		"a URL that cannot be fetched": {errURL, fault.Invalid}, "a project without a name": {errName, fault.Invalid},
		"a taken name": {errTaken, fault.Conflict}, "versions the wrong way round": {errDiff, fault.Invalid},
		"an unknown setting":  {s.SetSetting(ctx, s.env, "auto_destroy", true), fault.NotFound},
		"a setting's type":    {s.SetSetting(ctx, s.env, "auto_deploy", "perhaps"), fault.Invalid},
		"an unknown secret":   {s.SetSecret(ctx, s.env, "x", "y"), fault.Invalid},
		"nothing released":    {errNone, fault.NotFound},
		"an unknown version":  {s.Release(ctx, s.env, 7), fault.NotFound},
		"an unknown resource": {errResource, fault.NotFound},
	} {
		if !fault.Is(c.err, c.kind) {
			t.Errorf("%s gives %v, want a fault of kind %s", name, c.err, c.kind)
		}
	}
	if err := s.SetSetting(ctx, s.env, "protected_environment", "true"); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"deleted": s.DeleteEnvironment(ctx, s.env),
		"cleared": s.ClearEnvironment(ctx, s.env), "deleted with its project": s.DeleteProject(ctx, e.ProjectID)} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("a protected environment is %s: %v", what, err)
		}
	}
}

// The credentials cannot be opened (their key is gone): the report says so, in
// the stage that needs them.
func TestSecretsThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.store.SetSecret(t.Context(), s.env, source.SecretGitPassword, []byte("sealed elsewhere")); err != nil {
		t.Fatal(err)
	}
	id := s.request("api")
	c, names := s.done(id)
	_, stages, err := s.store.Compile(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	if *c.Success || names[len(names)-1] != intent.StageFetch || !strings.Contains(last.ErrOutput, "set it again") {
		t.Errorf("the report ends with %q: %q", last.Name, last.ErrOutput)
	}
}

// Each line about a compile names that compile, its version and no other.
func TestLinesOfALogNameTheirCompile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var ids []intent.CompileID
	for _, tip := range []string{"c1", "c2", "c3"} {
		s.parts.mu.Lock()
		s.parts.tip = tip
		s.parts.mu.Unlock()
		ids = append(ids, s.request("api"))
		s.done(ids[len(ids)-1])
	}
	s.Stop()
	var succeeded []string
	for _, line := range s.log.lines() {
		if strings.Contains(line, "compile succeeded") {
			succeeded = append(succeeded, line)
		}
	}
	if len(succeeded) != len(ids) {
		t.Fatalf("%d lines: %q", len(succeeded), succeeded)
	}
	for i, line := range succeeded {
		if want := fmt.Sprintf("compile=%s version=%d", ids[i], i+1); !strings.HasSuffix(line, want) ||
			strings.Count(line, "compile=") != 1 {
			t.Errorf("line %q should end with %q", line, want)
		}
	}
}
