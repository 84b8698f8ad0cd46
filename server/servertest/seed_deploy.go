package servertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// siteResources is how many resources production has.
const siteResources = 204

// siteVersion is what a compile of production exports: 204 resources on ten agents. The new one welcomes its visitors
// on some of its sites, has one site more and one page less, and does not know the content of another.
func siteVersion(isNew bool) *intent.NewVersion {
	v := &intent.NewVersion{}
	for n := range siteResources {
		if n == 199 && !isNew {
			continue
		}
		rid, word, hash := siteResource(n), "Hello", n
		if isNew && n%20 == 3 {
			word, hash = "Welcome", 1000+n
		}
		content, err := json.Marshal(map[string]any{
			"content": fmt.Sprintf("<h1>Site %d</h1>\n<p>%s.</p>\n", n, word), "group": "www-data", "mode": 644,
			"owner": "www-data", "path": rid.Value, "purged": false, "tags": []string{"web", "public"},
		})
		must(err)
		r := intent.Resource{ID: rid, Attributes: content, SendEvent: true}
		if n%5 != 0 && n >= 10 {
			r.Requires = []intent.ResourceID{siteResource(n - n%5)}
		}
		switch {
		case isNew && n == 61:
			r.Undefined, hash = []string{"content"}, 1000+n
		case isNew && n == 62:
			r.Requires, hash = append(r.Requires, siteResource(61)), 1000+n
		}
		r.AttributeHash = fmt.Sprintf("%064x", hash)
		v.Resources = append(v.Resources, r)
	}
	if isNew {
		v.Origins = origins()
	} else {
		left := intent.ResourceID{Type: "fs::File", Agent: "web01", Attribute: "path", Value: "/srv/www/left.html"}
		v.Resources = append(v.Resources, intent.Resource{
			ID: left, Attributes: json.RawMessage(`{"purged": false}`),
			AttributeHash: fmt.Sprintf("%064x", siteResources),
		})
	}
	return v
}

// origins says where the attributes of the failed file were set: its content by an argument, and what its purged
// derives from that by a function.
func origins() []byte {
	b, e := provenance.NewBuilder(), provenance.Entry{}
	place := func(file string, line int) provenance.Place { return provenance.Place{File: file, Line: line} }
	made := b.Statement(provenance.Statement{Kind: provenance.Argument, Place: place("main.cf", 3)})
	step := b.Step(provenance.Call{
		Type: "web::Site", Implementation: "web::site", At: place("libs/web/model/_init.cf", 20),
	}, "web::Site[name=shop]", provenance.TopLevel, made)
	content := b.Statement(provenance.Statement{Kind: provenance.Argument, Place: provenance.Place{
		File: "main.cf", Line: 12, EndLine: 12, Column: 9, Source: "        content = page",
	}})
	hash := b.Statement(provenance.Statement{
		Kind: provenance.Function, Plugin: "File.get_hash", Place: place("inmanta_plugins/fs/resources.py", 40),
	})
	e.Set(provenance.Mark{Name: b.Text("content"), Statement: content, Step: step})
	e.Set(provenance.Mark{Name: b.Text("purged"), Statement: hash, Step: provenance.TopLevel})
	e.Set(provenance.Mark{Depth: 1, Name: b.Text("content"), Statement: content, Step: step})
	b.Add(siteResource(23).String(), &e)
	packed, err := b.Table().Pack()
	must(err)
	return packed
}

// deployment is a run of a resource that went well, of a version of production.
func (s *seed) deployment(n, version int, action intent.ActionID, begin time.Time) *intent.FinishedAction {
	rid := siteResource(n)
	hash := fmt.Sprintf("%064x", n)
	if version >= 7 && n%20 == 3 {
		hash = fmt.Sprintf("%064x", 1000+n)
	}
	end := begin.Add(30 * time.Millisecond)
	return &intent.FinishedAction{
		Action: intent.Action{
			ID: action, Environment: productionID, Kind: intent.ActionDeploy, Resource: rid, Version: version,
			Started: begin, Finished: &end, Status: intent.StatusDeployed, Change: intent.NoChange,
		},
		State: intent.ResourceState{
			ID: rid, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
			LastRunAt: &end, LastSuccess: &end, LastDeployed: version, DeployedHash: hash, IntentHash: hash,
		},
	}
}

func (s *seed) finish(outcomes ...*intent.FinishedAction) {
	var done []intent.FinishedAction
	for _, o := range outcomes {
		done = append(done, *o)
	}
	must(s.Store.FinishActions(s.ctx, productionID, done))
}

// untried are resources whose handlers never ran.
func untried(n int) bool { return n >= 163 && n <= 168 }

// firstDeployments brings about version 6, but for a few resources that wait for their agents.
func (s *seed) firstDeployments() {
	begin := s.ago(4 * time.Hour)
	var all []*intent.FinishedAction
	for n := range siteResources {
		if n != 199 && !untried(n) {
			all = append(all, s.deployment(n, 6, uuid.NewSHA1(id(6), []byte{byte(n)}), begin))
		}
	}
	s.finish(all...)
}

// deployVersion7 deploys what version 7 changes; some of it fails, and some is under way.
func (s *seed) deployVersion7() {
	begin := s.ago(8 * time.Minute)
	healthy := s.deployment(5, 7, id(66), begin)
	healthy.Action.Change = intent.Created
	healthy.Action.Changes = map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}}
	healthy.Action.Messages = []intent.LogLine{{
		Level: "INFO", Message: "End of the deployment", Time: begin, Arguments: json.RawMessage(`{"changes":1}`),
	}}
	done := []*intent.FinishedAction{healthy}
	var under []intent.Action
	for n := range siteResources {
		one := s.deployment(n, 7, uuid.NewSHA1(id(7), []byte{byte(n)}), begin)
		switch n {
		case 83, 103, 123, 143:
			one.Action.Started = Present.Add(-30 * time.Second)
			under = append(under, one.Action)
			continue
		case 24, 44, 45:
			one.Action.Status = intent.StatusSkipped
			one.State.Compliance, one.State.LastRun = intent.NonCompliant, intent.RunSkipped
		case 43:
			one.Action.Status = intent.StatusFailed
			one.State.Compliance, one.State.LastRun = intent.NonCompliant, intent.RunFailed
			one.State.Attempts, one.State.Parked = 20, intent.ParkedAttempts
			one.State.ParkedAt, one.State.LastSuccess = ptr(Present.Add(-time.Hour)), ptr(Present.Add(-5*time.Hour))
		case 199:
		default:
			if n%20 != 3 || n == 23 || untried(n) {
				continue
			}
		}
		done = append(done, one)
	}
	done = append(done, s.failures()...)
	s.finish(done...)
	must(s.Store.StartActions(s.ctx, productionID, under))
}

// failures are three runs of a file whose disk is full, and of another that its agent cannot reach.
func (s *seed) failures() (out []*intent.FinishedAction) {
	for n := range 3 {
		begin := Present.Add(-time.Duration(8-3*n) * time.Minute)
		one := s.deployment(23, 7, id(60+n), begin)
		one.Action.Finished = ptr(begin.Add(412 * time.Millisecond))
		one.Action.Status = intent.StatusFailed
		one.Action.Changes = pageChange()
		one.Action.Messages = []intent.LogLine{
			{Level: "INFO", Message: "Start of the deployment: a new version was released", Time: begin},
			{Level: "DEBUG", Message: "Calling read_resource", Time: begin.Add(4 * time.Millisecond)},
			{
				Level: "DEBUG", Message: "Calling update_resource: content, mode differ",
				Time: begin.Add(80 * time.Millisecond),
			},
			{Level: "WARNING", Message: "The disk is 99 % full " + Evil, Time: begin.Add(300 * time.Millisecond)},
			{
				Level: "ERROR", Time: begin.Add(410 * time.Millisecond),
				Message: "No space left on device: /srv/www/site-023/index.html\nTraceback (most recent call last):\n" +
					"  File \"fs/resources.py\", line 118, in update_resource\n    self._io.put(path, content)\n" +
					"OSError: [Errno 28] No space left on device",
			},
		}
		one.State.Compliance, one.State.LastRun, one.State.Attempts = intent.NonCompliant, intent.RunFailed, n+1
		one.State.LastSuccess, one.State.LastRunAt = ptr(Present.Add(-5*time.Hour)), one.Action.Finished
		one.State.RetryAt = ptr(Present.Add(90 * time.Second))
		out = append(out, one)
	}
	// The breaker of web06, which a directory there tells of.
	unreachable := s.deployment(195, 7, id(67), Present.Add(-20*time.Minute))
	unreachable.Breaker = &intent.Breaker{
		Since: ptr(Present.Add(-20 * time.Minute)), ProbeAt: ptr(Present.Add(5 * time.Minute)),
		Pause: 8 * time.Minute, Failures: 9,
	}
	unreachable.Notices = []intent.Notice{{
		Severity: intent.SeverityError, Title: "Agent web06 cannot reach its target", URI: "/api/v2/agents",
		Message: "5 deployments in a row could not reach it. " + Evil,
	}}
	return append(out, unreachable)
}

// pageChange is what was found of the failed file, beside what is desired.
func pageChange() map[string]intent.AttributeChange {
	return map[string]intent.AttributeChange{
		"content": {Current: "<h1>Site 23</h1>\n<p>Hello.</p>\n", Desired: "<h1>Site 23</h1>\n<p>Welcome.</p>\n"},
		"mode":    {Current: 600, Desired: 644},
	}
}

// lookAtDrift finds that one file is not as it was left, and parks another that somebody keeps changing.
func (s *seed) lookAtDrift() {
	healed := s.deployment(7, 6, id(69), Present.Add(-4*time.Hour))
	healed.Drift = &intent.DriftReport{
		Found: map[string]intent.AttributeChange{"mode": {Current: 777, Desired: 644}}, Open: true, Healed: true,
	}
	s.finish(healed)
	contested := s.deployment(7, 6, id(64), Present.Add(-3*time.Hour))
	contested.Action.Finished = ptr(Present.Add(-3*time.Hour + time.Second))
	contested.Drift = &intent.DriftReport{
		Found: map[string]intent.AttributeChange{"mode": {Current: 777, Desired: 644}}, Open: true,
	}
	contested.State.Compliance, contested.State.DeployedHash = intent.NonCompliant, ""
	contested.State.Drifted = true
	contested.State.Parked, contested.State.ParkedAt = intent.ParkedContested, contested.Action.Finished
	contested.State.Heals = []intent.Heal{{Of: "mode", At: contested.Action.Started}}
	drifted := s.deployment(186, 7, id(65), Present.Add(-8*time.Minute))
	drifted.Drift = &intent.DriftReport{
		Found: map[string]intent.AttributeChange{
			"mode":    {Current: 600, Desired: 644},
			"content": {Current: Evil, Desired: "<p>Hello.</p>"},
		}, Open: true,
	}
	drifted.State.Compliance, drifted.State.Drifted = intent.NonCompliant, true
	s.finish(contested, drifted)
	gone := s.deployment(186, 7, id(68), Present.Add(-7*time.Minute))
	gone.Drift = &intent.DriftReport{
		Found: map[string]intent.AttributeChange{"mode": {Current: 600, Desired: 644}}, Open: true, Complete: true,
	}
	gone.State.Compliance, gone.State.Drifted = intent.NonCompliant, true
	s.finish(gone)
	s.ago(2 * time.Hour)
	must(s.Control.PauseAgent(s.as("tomas", "its disk is replaced"), productionID, "web09", true))
}

// candidates are version 8, which nobody released, and version 9, which takes away so much that it is held.
func (s *seed) candidates() {
	for _, c := range []struct {
		n, resources int
		subject      string
		age          time.Duration
	}{{31, 203, "Close one site", time.Minute}, {32, 120, "Close the east site", 30 * time.Second}} {
		begin := s.ago(c.age + 2*time.Second)
		v := siteVersion(true)
		v.Resources, v.Origins = v.Resources[:c.resources], nil
		number := s.compile(recordedCompile{
			id: id(c.n), env: productionID, begin: begin, took: time.Second, version: v,
			revision: revision(commit(fmt.Sprintf("ca0d1d%02x", c.n)), c.subject, "Noor Haddad", begin),
		})
		if c.n == 32 {
			s.ago(29 * time.Second)
			if err := s.Control.Release(s.ctx, productionID, number); err == nil {
				must(fmt.Errorf("version %d is released, not held", number))
			}
		}
	}
}

// dryRunSize is how many resources the dry runs look at.
const dryRunSize = 6

// dryRun is one of version 7, with something of every kind.
func (s *seed) dryRun() {
	at := s.ago(2 * time.Minute)
	must(s.Store.CreateDryRun(s.ctx, intent.DryRun{
		ID: dryRunID, Environment: productionID, Version: 7, Date: at, Total: dryRunSize, Todo: dryRunSize, Base: 6,
	}))
	s.endDryRun(dryRunID, time.Minute)
}

// endDryRun records what a dry run found, and that it ended so long ago.
func (s *seed) endDryRun(run intent.ActionID, age time.Duration) {
	at := s.ago(age)
	page := func(agent, path string) intent.ResourceID {
		return intent.ResourceID{Type: "fs::File", Agent: agent, Attribute: "path", Value: path}
	}
	purged := func(from, to bool) map[string]intent.AttributeChange {
		return map[string]intent.AttributeChange{"purged": {Current: from, Desired: to}}
	}
	diffs := []intent.ResourceDiff{
		{ID: siteResource(23), Kind: intent.DiffModified, Attributes: pageChange()},
		{ID: siteResource(5), Kind: intent.DiffUnmodified},
		{ID: page("web09", "/etc/motd"), Kind: intent.DiffAgentDown, Reason: "no route to web09 " + Evil},
		{
			ID: page("web03", "/srv/www/inside.html"), Kind: intent.DiffUnknown, Reason: "no such folder",
			Attributes: map[string]intent.AttributeChange{"handler": {Current: "FAILED", Desired: "no such folder"}},
		},
		{ID: page("web02", "/srv/www/old.html"), Kind: intent.DiffDeleted, Attributes: purged(false, true)},
		{ID: page("web03", "/srv/www/new.html"), Kind: intent.DiffAdded, Attributes: purged(true, false)},
	}
	must(s.Store.AddDryRunDiffs(s.ctx, productionID, run, diffs))
	behind := map[intent.ResourceID]intent.ResourceID{
		page("web03", "/srv/www/inside.html"): page("web03", "/srv/www/new.html"),
	}
	must(s.Store.EndDryRun(s.ctx, productionID, run, intent.DryRunDone, "", behind, at))
}

// pullRequests are one that was previewed and one of a stranger, and what the forge is to hear of them.
func (s *seed) pullRequests() {
	at := s.ago(5 * time.Minute)
	must(s.Store.AskForge(s.ctx, productionID, 3, at))
	dead, _, err := s.Store.TakeOutbox(s.ctx, productionID, at, at.Add(time.Minute))
	must(err)
	must(s.Store.OutboxFailed(s.ctx, *dead, "the forge answered 401 "+Evil, at, true, at.Add(time.Second)))
	must(s.Store.SavePull(s.ctx, intent.PullRequest{
		Environment: productionID, Number: 7, State: intent.PullIsOpen, Title: "Move the shop", Author: "ida",
		URL: "https://git.example.com/infra/model/pulls/7", Trusted: true, Base: "main", Head: pullHead, Updated: at,
	}, false, at))
	preview := intent.Compile{
		ID: id(33), Environment: productionID, Requested: at, Update: true, Export: true,
		Trigger: intent.Trigger{Type: "dryrun", Message: "preview of pull request 7"},
	}
	must(s.Store.StartPreview(s.ctx, preview))
	_, err = s.Store.StartPullPreview(s.ctx, 7, intent.DryRun{
		ID: previewID, Environment: productionID, Commit: pullHead, Compile: &preview.ID, Date: at, Base: 7,
	})
	must(err)
	v := siteVersion(true)
	v.Environment, v.Preview = productionID, true
	v.Provenance = intent.Provenance{Compile: preview.ID, Commit: pullHead, Branch: "main", Trigger: preview.Trigger}
	number, err := s.Store.StoreVersion(s.ctx, *v, at)
	must(err)
	must(s.Store.FinishCompile(s.ctx, preview.ID, intent.CompileEnd{
		Success: true, Version: &number, At: at.Add(time.Second),
	}))
	must(s.Store.SetDryRunVersion(s.ctx, productionID, previewID, number, dryRunSize))
	s.endDryRun(previewID, 4*time.Minute)
	must(s.Store.SavePull(s.ctx, intent.PullRequest{
		Environment: productionID, Number: 12, State: intent.PullIsOpen, Title: "A gift " + Evil, Author: "mallory",
		URL: "javascript:alert(1)", Fork: true, Base: "main", Head: stranger, Updated: at,
	}, false, at))
	waiting, _, err := s.Store.TakeOutbox(s.ctx, productionID, Present, Present.Add(time.Minute))
	must(err)
	must(s.Store.OutboxFailed(
		s.ctx, *waiting, "the forge answered 502", Present.Add(time.Minute), false, Present.Add(-time.Second)))
}

// deadProcess is one whose attempts ran out, in staging.
func (s *seed) deadProcess() {
	id, err := s.Store.Schedule(s.ctx, intent.NewProcess{
		Name: "pager.call", Resource: intent.ProcessResource{Type: "pager", ID: "night shift " + Evil},
		Environment: stagingID, Most: 1, Deadline: time.Hour, MadeBy: "ida",
	})
	must(err)
	p, err := s.Store.TakeProcess(s.ctx, id, "worker-1", time.Minute, nil)
	must(err)
	must(s.Store.EndProcess(s.ctx, p.Claim(), intent.ProcessEnd{
		State: intent.ProcessDead, Reason: "its attempts ran out", Problem: "the pager answered 500 " + Evil,
	}))
}

// followStaging lets production follow staging, and promotes the commit that staging has: it becomes version 7.
func (s *seed) followStaging() {
	s.deployStaging(id(40), s.deployed, "Serve the new landing page", "Noor Haddad", 20*time.Minute, intent.Compliant)
	s.ago(10 * time.Minute)
	must(s.Control.SetSetting(s.ctx, productionID, "follow", "staging"))
	must(s.Control.SetSetting(s.ctx, productionID, "follow_approval", true))
	s.judge()
	begin := s.ago(9 * time.Minute)
	must(s.Control.ApprovePromotion(s.as("ida", "it looked well"), productionID, s.deployed))
	promoted, err := s.Store.LastPromoted(s.ctx, productionID)
	must(err)
	if promoted == nil || promoted.Compile == nil {
		must(fmt.Errorf("the commit of staging is not promoted: %+v", promoted))
	}
	s.good = *promoted.Compile
	c, _, err := s.Store.Compile(s.ctx, s.good)
	must(err)
	number := s.compile(recordedCompile{
		id: c.ID, env: productionID, begin: begin, took: 4100 * time.Millisecond, trigger: c.Trigger,
		revision: revision(s.deployed, "Serve the new landing page", "Noor Haddad", begin), version: siteVersion(true),
	})
	s.ago(9*time.Minute - 4*time.Second)
	must(s.Control.Release(s.ctx, productionID, number))
}

// nextPromotion has a newer commit in staging, which waits for production's gates.
func (s *seed) nextPromotion() {
	s.deployStaging(id(41), strings.Repeat("d", 40), Evil, "<img src=x> Ada", 5*time.Minute, intent.NonCompliant)
	s.SetClock(Present)
	must(s.Control.SetSetting(s.ctx, productionID, "follow_soak", 600))
	s.judge()
}

// judge looks at what is deployed in staging, as the loop of production does.
func (s *seed) judge() {
	production, err := s.Store.Environment(s.ctx, productionID)
	must(err)
	staging, err := s.Store.Environment(s.ctx, stagingID)
	must(err)
	_, err = s.Store.JudgePromotion(s.ctx, production, &staging, "", s.Now())
	must(err)
}

// deployStaging compiles and deploys a commit in staging; all its resources end as compliance says.
func (s *seed) deployStaging(
	compile intent.CompileID, hash, subject, author string, age time.Duration, compliance intent.Compliance,
) {
	begin := s.ago(age)
	v := siteVersion(false)
	v.Resources = v.Resources[:4]
	number := s.compile(recordedCompile{
		id: compile, env: stagingID, begin: begin, took: time.Second, version: v,
		revision: revision(hash, subject, author, begin),
	})
	s.SetClock(begin.Add(time.Second))
	must(s.Control.Release(s.ctx, stagingID, number))
	var done []intent.FinishedAction
	for n := range 4 {
		one := s.deployment(n, number, uuid.NewSHA1(compile, []byte{byte(n)}), begin.Add(2*time.Second))
		one.Action.Environment, one.State.Compliance = stagingID, compliance
		done = append(done, *one)
	}
	must(s.Store.FinishActions(s.ctx, stagingID, done))
}
