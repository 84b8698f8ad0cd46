package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// seed writes the history of a rich server, in the order in which it happened, through the methods by which the server
// itself records it.
type seed struct {
	*Server
	ctx      context.Context
	deployed string // the commit of version 7, which is in the repository
	good     intent.CompileID
}

// failed is what a step of a seed panics with.
type failed struct{ err error }

// must ends the seed with an error.
func must(err error) {
	if err != nil {
		panic(failed{err})
	}
}

func (s *seed) fill() (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failed)
			if !ok {
				panic(p)
			}
			err = f.err
		}
	}()
	s.environments()
	s.compileHistory()
	s.rollBack()
	s.firstDeployments()
	s.followStaging()
	s.deployVersion7()
	s.candidates()
	s.failingCompiles()
	s.lookAtDrift()
	s.values()
	s.dryRun()
	s.pullRequests()
	s.deadProcess()
	s.deliveries()
	s.gitState()
	s.nextPromotion()
	s.runningCompile()
	s.readTheFirstNotice()
	s.SetClock(Present)
	return nil
}

// ago returns the time that lies d before the present, and sets the clock to it.
func (s *seed) ago(d time.Duration) time.Time {
	at := Present.Add(-d)
	s.SetClock(at)
	return at
}

// as returns a context in which a person acts.
func (s *seed) as(by, reason string) context.Context { return control.As(s.ctx, by, reason) }

func (s *seed) environments() {
	s.ago(40 * 24 * time.Hour)
	_, err := s.Control.CreateProject(s.ctx, intent.Project{ID: projectID, Name: "infra"})
	must(err)
	repository := intent.Source{URL: RepositoryURL, Branch: "main"}
	for _, e := range []intent.Environment{
		{ID: productionID, Name: "production", Source: repository},
		{ID: stagingID, Name: "staging", Source: repository},
		{ID: sandboxID, Name: "sandbox"},
	} {
		e.ProjectID = projectID
		_, err := s.Control.CreateEnvironment(s.ctx, control.NewEnvironment{Environment: e})
		must(err)
	}
	must(s.Control.SetSecret(s.ctx, productionID, "webhook", "s3cret"))
	must(s.Control.SetSetting(s.ctx, productionID, "git_poll_interval", 30))
	must(s.Control.SetSetting(s.ctx, productionID, "pull_previews", "trusted"))
}

func revision(hash, subject, author string, at time.Time) intent.Revision {
	email := strings.ToLower(strings.Fields(author)[0]) + "@example.com"
	return intent.Revision{Commit: hash, Branch: "main", Author: author, Email: email, Subject: subject, Time: at}
}

// recordedCompile is one compile as a seed records it.
type recordedCompile struct {
	id       intent.CompileID
	env      intent.EnvironmentID
	begin    time.Time
	took     time.Duration
	revision intent.Revision
	trigger  intent.Trigger
	version  *intent.NewVersion
	fails    string // the stage that fails; empty: none
	problem  string // what that stage prints
	end      intent.CompileEnd
}

var stageNames = []string{
	intent.StageFetch, intent.StageCheckout, intent.StageVenv, intent.StageInstall, intent.StageCompile,
	intent.StageExport, intent.StageRelease,
}

var stageCommands = map[string]string{
	intent.StageFetch:    "git fetch origin main",
	intent.StageCheckout: "git checkout --force --detach 4c81d20",
	intent.StageVenv:     "uv venv --python 3.13 .env-py3.13",
	intent.StageInstall:  "uv pip install -r requirements.txt",
	intent.StageCompile:  "ordain compile --export",
	intent.StageExport:   "store version",
	intent.StageRelease:  "release version",
}

var stageOutputs = map[string]string{
	intent.StageFetch:   "From https://git.example.com/infra/model\n   9f03ab1..4c81d20  main -> origin/main\n",
	intent.StageInstall: "Resolved 14 packages in 212ms\nAudited 14 packages in 3ms\n",
	intent.StageCompile: "loaded 3 modules, 41 files\n204 resources from 612 instances\n",
}

// compile records a compile from its request to its end, and returns the number of the version that it made, 0 for
// none. The version is not released.
func (s *seed) compile(r recordedCompile) (number int) {
	if r.trigger.Type == "" {
		r.trigger = intent.Trigger{Type: "webhook", Message: "GitHub announced a push"}
	}
	if r.trigger.Type != intent.TriggerPromotion { // those are asked for already
		must(s.Store.EnqueueCompile(s.ctx, intent.Compile{
			ID: r.id, Environment: r.env, Requested: r.begin, Trigger: r.trigger, Update: true, Export: true,
		}))
	}
	s.start(r)
	at := r.begin.Add(40 * time.Millisecond)
	for i, name := range stageNames {
		if name == intent.StageExport && r.version != nil {
			r.version.Environment, r.version.Provenance = r.env, provenanceOf(r)
			var err error
			number, err = s.Store.StoreVersion(s.ctx, *r.version, at)
			must(err)
			stageOutputs[name] = fmt.Sprintf("Committed resources with version %d\n", number)
		}
		at = s.stage(r, name, at, time.Duration(80+70*i)*time.Millisecond, true)
		if name == r.fails {
			break
		}
	}
	r.end.At, r.end.Success = r.begin.Add(r.took), r.fails == ""
	if number > 0 {
		r.end.Version = &number
	}
	must(s.Store.FinishCompile(s.ctx, r.id, r.end))
	return number
}

// start takes a compile from the queue.
func (s *seed) start(r recordedCompile) {
	c, err := s.Store.StartCompile(s.ctx, r.env, r.begin.Add(40*time.Millisecond))
	must(err)
	if c == nil || c.ID != r.id {
		must(fmt.Errorf("the queue of %s gave %v, not %s", r.env, c, r.id))
	}
	must(s.Store.SetCompileRevision(s.ctx, r.id, r.revision))
}

// stage records one stage of a compile and returns when it ended.
func (s *seed) stage(r recordedCompile, name string, at time.Time, took time.Duration, ends bool) time.Time {
	stage := uuid.NewSHA1(r.id, []byte(name))
	must(s.Store.StartStage(s.ctx, intent.Stage{ID: stage, Compile: r.id, Name: name, Started: at}))
	output, problem, code := stageOutputs[name], "", 0
	if name == r.fails {
		output, problem, code = "", r.problem, 1
	}
	if output+problem != "" {
		must(s.Store.AppendStage(s.ctx, stage, output, problem))
	}
	if ends {
		must(s.Store.FinishStage(s.ctx, stage, stageCommands[name], code, at.Add(took)))
	}
	return at.Add(took)
}

func provenanceOf(r recordedCompile) intent.Provenance {
	return intent.Provenance{
		Compile: r.id, Commit: r.revision.Commit, Branch: r.revision.Branch, Author: r.revision.Author,
		Email: r.revision.Email, Subject: r.revision.Subject, CommitTime: r.revision.Time, Trigger: r.trigger,
		Modules:        map[string]string{"std": "8.7.5", "fs": "1.4.0", "web": "0.3.0"},
		CompilerPython: "3.13", Ordain: Version,
	}
}

// compileHistory compiles 26 commits, a fifth of which cannot install its modules; the last good ones become the
// versions 1 to 5 of production.
func (s *seed) compileHistory() {
	subjects := []string{
		"Add the second mail relay", "Raise the connection limit of the database",
		"Rotate the certificates of the front", "Move backups to the new share", "Drop the old monitoring agents",
	}
	authors := []string{"Noor Haddad", "Ida Lind", "Tomas Berg"}
	for n := range 26 {
		begin := s.ago(time.Duration(26-n)*5*time.Hour + 20*time.Minute)
		hash := commit(fmt.Sprintf("%07x", 0xabc1230+n*7919))
		if n == 25 {
			hash = commit("5e1f00d")
		}
		r := recordedCompile{
			id: id(100 + n), env: productionID, begin: begin, took: time.Duration(900+(n*n*37)%2600) * time.Millisecond,
			revision: revision(hash, subjects[n%len(subjects)], authors[n%len(authors)], begin),
		}
		if n == 22 {
			r.revision.Author, r.revision.Subject = "<img src=x> Ada", Evil
		}
		if n%7 == 3 {
			r.fails, r.problem = intent.StageInstall, "no version of fs satisfies fs~=9\n"
			s.compile(r)
			continue
		}
		if n >= 20 {
			r.version = siteVersion(false)
		}
		if number := s.compile(r); number > 0 {
			s.SetClock(begin.Add(r.took + time.Second))
			must(s.Control.Release(s.ctx, productionID, number))
		}
	}
}

// rollBack takes version 5 back: version 6 has the content of version 4.
func (s *seed) rollBack() {
	s.ago(5 * time.Hour)
	_, err := s.Control.RollBack(s.as("<b>ida</b>", "the shop was down"), productionID, 4)
	must(err)
}

// failingCompiles has a compile whose model has an error, after two others that had the same.
func (s *seed) failingCompiles() {
	bad := diag.Diagnostic{
		Severity: diag.Error, Code: "E0301", Kind: "inmanta.ast.AttributeException",
		Message:  "Could not set attribute `port` on instance `web::Site (front)`",
		Location: &diag.Location{File: "main.cf", Line: 24, Column: 12, EndLine: 24, EndColumn: 20},
		Source:   `    port = "eighty"`,
		Causes: []diag.Diagnostic{{
			Severity: diag.Error, Code: "E0305", Kind: "inmanta.ast.RuntimeException",
			Message:  `Invalid value 'eighty', expected int`,
			Location: &diag.Location{File: "libs/web/model/_init.cf", Line: 8, Column: 5, EndColumn: 8},
			Source:   "    int port = 80", Hint: "write the number without quotes: port = 80",
		}},
		Trace: "Could not set attribute `port` on instance `web::Site (front)` (reported at main.cf:24:12)\n" +
			"caused by:\n  Invalid value 'eighty', expected int",
	}
	text, err := json.Marshal([]diag.Diagnostic{bad})
	must(err)
	begin := s.ago(3 * time.Minute)
	s.compile(recordedCompile{
		id: failedID, env: productionID, begin: begin, took: 1900 * time.Millisecond,
		revision: revision(commit("9f03ab1"), "Listen on the standard port", "Tomas Berg", begin),
		trigger:  intent.Trigger{Type: "webhook", Message: "GitHub announced a push by tomas"},
		fails:    intent.StageCompile, problem: bad.Render() + Evil + "\n",
		end: intent.CompileEnd{Diagnostics: text, Notice: &intent.Notice{
			Severity: intent.SeverityError, Title: "Compilation failed", Message: "the model has errors",
			URI: "/api/v2/compilereport/" + failedID.String(), Compile: ptr(failedID),
		}},
	})
}

// runningCompile has a compile that installs modules at present.
func (s *seed) runningCompile() {
	begin := s.ago(2 * time.Second)
	r := recordedCompile{
		id: runningID, env: productionID, begin: begin,
		revision: revision(commit("d7713fe"), "Give the site its own log folder", "Ida Lind", begin),
	}
	must(s.Store.EnqueueCompile(s.ctx, intent.Compile{
		ID: r.id, Environment: r.env, Requested: begin, Update: true, Export: true,
		Trigger: intent.Trigger{Type: "webhook", Message: "GitHub announced a push by ida"},
	}))
	s.start(r)
	at := begin.Add(40 * time.Millisecond)
	for i, name := range stageNames[:4] {
		at = s.stage(r, name, at, time.Duration(80+170*i)*time.Millisecond, i < 3)
	}
}

// values are a parameter and a fact.
func (s *seed) values() {
	for _, p := range []intent.Parameter{
		{ID: id(80), Name: "region", Value: "north", Source: "user", Updated: s.ago(time.Hour)},
		{
			ID: id(81), Name: "uptime", Value: "93 days", Source: "fact", Resource: siteResource(5),
			Updated: s.ago(time.Minute), Expires: true,
		},
	} {
		must(s.Control.SetParameter(s.ctx, productionID, p))
	}
	must(s.Store.SetDiscovered(s.ctx, productionID, []intent.Discovered{
		{
			ID: siteResource(5), Discovery: siteResource(10), Record: json.RawMessage(`{"mode": 755}`),
			Found: Present.Add(-time.Hour),
		},
		{
			ID:        intent.ResourceID{Type: "fs::File", Agent: "web01", Attribute: "path", Value: "/etc/found"},
			Discovery: siteResource(10), Record: json.RawMessage(`{"owner": "root"}`), Found: Present.Add(-time.Hour),
		},
	}))
}

// readTheFirstNotice marks the oldest notification of production as read.
func (s *seed) readTheFirstNotice() {
	page, err := s.Store.Notifications(s.ctx, productionID, intent.ListQuery{Limit: 1, Sort: "created"})
	must(err)
	_, err = s.Control.MarkNotification(s.ctx, productionID, page.Items[0].ID, ptr(true), nil)
	must(err)
}

// gitState has a branch that was rewritten.
func (s *seed) gitState() {
	at := s.ago(time.Minute)
	must(s.Store.SetGitState(s.ctx, productionID, intent.GitState{
		Kind: intent.GitRewritten, Commit: strings.Repeat("a", 40),
		Message: "aaaaaaa does not descend from bbbbbbb, which is deployed",
		Advice:  "accept it, if that was meant", Since: at, Checked: at,
	}))
}

// deliveries are webhooks as strangers send them.
func (s *seed) deliveries() {
	event := func(kind intent.HookKind, name, ref, commit, subject string) intent.HookEvent {
		return intent.HookEvent{
			Kind: kind, Name: name, Repository: "shop/infra", URLs: []string{"https://git.example.com/shop/infra.git"},
			Ref: ref, Commit: commit, DefaultBranch: "main", Sender: "<script>alert(1)</script>", Subject: subject,
		}
	}
	var all []intent.Delivery
	add := func(n int, age time.Duration, e intent.HookEvent, o intent.DeliveryOutcome) {
		o.Environment = productionID
		if o.State != intent.OutcomeWaiting {
			o.Handled = ptr(Present.Add(-age + time.Second))
		}
		all = append(all, intent.Delivery{
			ID: id(900 + n), Forge: "github", Key: fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012x", n),
			Received: Present.Add(-age), Size: 7431, Event: e, Verified: o.State != intent.OutcomeRefused,
			Outcomes: []intent.DeliveryOutcome{o},
		})
	}
	add(1, 9*time.Minute, event(intent.HookPush, "push", "refs/heads/main", s.deployed, "Serve the new landing page"),
		intent.DeliveryOutcome{
			State: intent.OutcomeStarted, Reason: "a compile of 4c81d20 was asked for", Compile: &s.good,
		})
	add(2, 20*time.Minute, event(intent.HookPush, "push", "refs/heads/<script>alert(1)</script>", s.deployed, ""),
		intent.DeliveryOutcome{State: intent.OutcomeSkipped, Reason: "it follows main, not <script>alert(1)</script>"})
	add(3, time.Hour, event(intent.HookPing, "ping", "", "", ""), intent.DeliveryOutcome{
		State: intent.OutcomeRefused, Reason: "its signature does not fit the environment's webhook secret",
	})
	pull := event(intent.HookPull, "pull_request opened", "", "", "")
	pull.Pull = &intent.Pull{
		Number: 12, Action: intent.PullOpened, Title: "<img src=x>", Author: "mallory", Fork: true,
	}
	add(4, time.Minute, pull, intent.DeliveryOutcome{State: intent.OutcomeWaiting})
	ended := map[uuid.UUID]intent.DeliveryOutcome{}
	for _, d := range all {
		if o := &d.Outcomes[0]; o.State == intent.OutcomeStarted || o.State == intent.OutcomeSkipped {
			ended[d.ID] = *o
			o.State, o.Reason, o.Compile, o.Handled = intent.OutcomeWaiting, "", nil, nil
		}
	}
	_, err := s.Store.RecordDeliveries(s.ctx, all)
	must(err)
	must(s.Store.FinishDeliveries(s.ctx, productionID, ended))
}
