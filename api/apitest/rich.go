package apitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// Rich is a server with a history: two environments, a compile that runs, one
// that failed with a diagnostic, and two hundred resources in every state.
type Rich struct {
	*Control
	Production *Env
	Staging    *Env
	Running    uuid.UUID // a compile of production
	Failed     uuid.UUID // a compile of production with a diagnostic
	Good       uuid.UUID // the compile of the active version
	DryRunID   uuid.UUID
	Hook       uuid.UUID         // a webhook of production
	FailedFile intent.ResourceID // a resource whose last deployment failed
	// Resources that are parked after too many attempts, that somebody else keeps changing, that drifted.
	ParkedFile, ContestedFile, DriftedFile intent.ResourceID
	HealthyDir                             intent.ResourceID
	At                                     time.Time
}

// Evil is text as a hostile model or handler would write it.
const Evil = `<script>alert("x")</script><img src=x onerror=alert(1)>`

func id(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("%08x-0000-4000-8000-%012x", 0xa0000000+n, n))
}

func ptr[T any](v T) *T { return &v }

// NewRich makes the same server every time; at is its present.
func NewRich(at time.Time) *Rich {
	c := New()
	c.Now = func() time.Time { return at }
	r := &Rich{Control: c, At: at, Running: id(30), Failed: id(29), Good: id(28), DryRunID: id(70)}
	infra := intent.Project{ID: id(1), Name: "infra"}
	c.Projs = []intent.Project{infra}
	r.Production = &Env{Environment: intent.Environment{
		ID: id(10), ProjectID: infra.ID, ProjectName: infra.Name, Name: "production",
		Source:  intent.Source{URL: "https://git.example.com/infra/model.git", Branch: "main"},
		Created: at.Add(-40 * 24 * time.Hour), Settings: map[string]any{"git_poll_interval": 30},
	}, Secrets: map[string]string{"webhook": "s3cret"}}
	r.Staging = &Env{Environment: intent.Environment{
		ID: id(11), ProjectID: infra.ID, ProjectName: infra.Name, Name: "staging", Created: at.Add(-time.Hour),
	}}
	c.Envs = []*Env{r.Production, r.Staging}
	r.resources()
	r.runs()
	r.notices()
	r.pulls()
	r.hooks()
	return r
}

func (r *Rich) revision(commit, subject, author string, age time.Duration) *intent.Revision {
	return &intent.Revision{
		Commit: (commit + strings.Repeat("0", 40))[:40], Branch: "main", Author: author,
		Email: strings.ToLower(strings.Fields(author)[0]) + "@example.com", Subject: subject, Time: r.At.Add(-age),
	}
}

// stages gives the record of a run, one stage after the other, up to the
// failing one.
func (r *Rich) stages(run uuid.UUID, begin time.Time, names []string, fail string, openLast bool) []intent.Stage {
	commands := map[string]string{
		intent.StageFetch:    "git fetch origin main",
		intent.StageCheckout: "git checkout --force --detach 4c81d20",
		intent.StageVenv:     "uv venv --python 3.13 .env-py3.13",
		intent.StageInstall:  "uv pip install -r requirements.txt",
		intent.StageCompile:  "ordain compile --export",
		intent.StageExport:   "store version",
		intent.StageRelease:  "release version",
	}
	outputs := map[string]string{
		intent.StageFetch:   "From https://git.example.com/infra/model\n   9f03ab1..4c81d20  main -> origin/main\n",
		intent.StageInstall: "Resolved 14 packages in 212ms\nAudited 14 packages in 3ms\n",
		intent.StageCompile: "loaded 3 modules, 41 files\n204 resources from 612 instances\n",
		intent.StageExport:  "Committed resources with version 7\n",
	}
	var out []intent.Stage
	for i, name := range names {
		took := time.Duration(80+170*i) * time.Millisecond
		s := intent.Stage{
			ID:      uuid.NewSHA1(run, []byte(name)),
			Compile: run,
			Name:    name,
			Command: commands[name],
			Started: begin,
			Output:  outputs[name],
		}
		begin = begin.Add(took)
		if !(openLast && i == len(names)-1) {
			s.Completed, s.ReturnCode = ptr(begin), ptr(0)
		}
		if name == fail {
			s.ReturnCode = ptr(1)
		}
		out = append(out, s)
	}
	return out
}

func (r *Rich) runs() {
	e, at := r.Production, r.At
	all := []string{
		intent.StageFetch,
		intent.StageCheckout,
		intent.StageVenv,
		intent.StageInstall,
		intent.StageCompile,
		intent.StageExport,
		intent.StageRelease,
	}
	subjects := []string{
		"Add the second mail relay",
		"Raise the connection limit of the database",
		"Rotate the certificates of the front",
		"Move backups to the new share",
		"Drop the old monitoring agents",
	}
	authors := []string{"Noor Haddad", "Ida Lind", "Tomas Berg"}
	for n := range 26 {
		age := time.Duration(26-n)*5*time.Hour + 20*time.Minute
		begin := at.Add(-age)
		took := time.Duration(900+(n*n*37)%2600) * time.Millisecond
		run := Run{Compile: intent.Compile{
			ID: id(
				100 + n,
			), Environment: e.ID, Requested: begin, Started: ptr(begin.Add(60 * time.Millisecond)), Completed: ptr(begin.Add(took)),
			Trigger: intent.Trigger{
				Type:    "webhook",
				Message: "GitHub announced a push",
			}, Update: true, Export: true, Success: ptr(n%7 != 3),
			Revision: r.revision(
				fmt.Sprintf("%07x", 0xabc1230+n*7919),
				subjects[n%len(subjects)],
				authors[n%len(authors)],
				age,
			),
		}}
		run.Stages = r.stages(run.ID, begin, all, "", false)
		if n%7 == 3 {
			run.Stages = r.stages(run.ID, begin, all[:4], intent.StageInstall, false)
		}
		e.Runs = append(e.Runs, run)
	}
	good := Run{Compile: intent.Compile{
		ID: r.Good, Environment: e.ID, Requested: at.Add(-9 * time.Minute), Started: ptr(at.Add(-9*time.Minute + 40*time.Millisecond)),
		Completed: ptr(
			at.Add(-9*time.Minute + 4100*time.Millisecond),
		), Trigger: intent.Trigger{Type: "webhook", Message: "GitHub announced a push by noor"},
		Update: true, Export: true, Success: ptr(true), Version: ptr(7),
		Revision: r.revision("4c81d20", "Serve the new landing page", "Noor Haddad", 9*time.Minute),
	}}
	good.Stages = r.stages(good.ID, good.Requested, all, "", false)
	source := `    port = "eighty"`
	bad := diag.Diagnostic{
		Severity: diag.Error, Code: "E0301", Kind: "inmanta.ast.AttributeException",
		Message:  "Could not set attribute `port` on instance `web::Site (front)`",
		Location: &diag.Location{File: "main.cf", Line: 24, Column: 12, EndLine: 24, EndColumn: 20}, Source: source,
		Causes: []diag.Diagnostic{{
			Severity: diag.Error, Code: "E0305", Kind: "inmanta.ast.RuntimeException",
			Message: `Invalid value 'eighty', expected int`, Location: &diag.Location{File: "libs/web/model/_init.cf", Line: 8, Column: 5, EndColumn: 8},
			Source: "    int port = 80", Hint: "write the number without quotes: port = 80",
		}},
		Trace: "Could not set attribute `port` on instance `web::Site (front)` (reported at main.cf:24:12)\ncaused by:\n  Invalid value 'eighty', expected int",
	}
	text, err := json.Marshal([]diag.Diagnostic{bad})
	if err != nil {
		panic(err)
	}
	broken := Run{Compile: intent.Compile{
		ID: r.Failed, Environment: e.ID, Requested: at.Add(-3 * time.Minute), Started: ptr(at.Add(-3*time.Minute + 20*time.Millisecond)),
		Completed: ptr(
			at.Add(-3*time.Minute + 1900*time.Millisecond),
		), Trigger: intent.Trigger{Type: "webhook", Message: "GitHub announced a push by tomas"},
		Update: true, Export: true, Success: ptr(false), Diagnostics: text,
		Revision: r.revision("9f03ab1", "Listen on the standard port", "Tomas Berg", 3*time.Minute),
	}}
	broken.Stages = r.stages(broken.ID, broken.Requested, all[:5], intent.StageCompile, false)
	broken.Stages[4].Output = ""
	broken.Stages[4].ErrOutput = bad.Render() + Evil + "\n"
	now := Run{Compile: intent.Compile{
		ID: r.Running, Environment: e.ID, Requested: at.Add(-2 * time.Second), Started: ptr(at.Add(-1900 * time.Millisecond)),
		Trigger: intent.Trigger{Type: "webhook", Message: "GitHub announced a push by ida"}, Update: true, Export: true,
		Revision: r.revision("d7713fe", "Give the site its own log folder", "Ida Lind", 2*time.Second),
	}}
	now.Stages = r.stages(now.ID, *now.Started, all[:4], "", true)
	e.Runs = append(e.Runs, good, broken, now)
}

// resources fills production with two hundred resources on ten agents.
func (r *Rich) resources() {
	e, at := r.Production, r.At
	e.History = map[intent.ResourceID][]intent.ResourceHistory{}
	versions := map[int][]intent.Resource{}
	for n := range 204 {
		agent := fmt.Sprintf("web%02d", n%10+1)
		path := fmt.Sprintf("/srv/www/site-%03d/index.html", n)
		kind := "fs::File"
		switch {
		case n%5 == 0:
			kind, path = "fs::Directory", fmt.Sprintf("/srv/www/site-%03d", n)
		case n%17 == 1:
			kind, path = "web::Site", fmt.Sprintf("site-%03d.example.com", n)
		}
		rid := intent.ResourceID{Type: kind, Agent: agent, Attribute: "path", Value: path}
		if kind == "web::Site" {
			rid.Attribute = "name"
		}
		content := fmt.Sprintf("<h1>Site %d</h1>\n<p>Welcome.</p>\n", n)
		attributes := func(body string) json.RawMessage {
			text, err := json.Marshal(map[string]any{
				"content": body, "group": "www-data", "mode": 644, "owner": "www-data", "path": path, "purged": false, "tags": []string{"web", "public"},
			})
			if err != nil {
				panic(err)
			}
			return text
		}
		var requires []intent.ResourceID
		if n%5 != 0 && n >= 10 {
			parent := n - n%5
			requires = []intent.ResourceID{
				{
					Type:      "fs::Directory",
					Agent:     fmt.Sprintf("web%02d", parent%10+1),
					Attribute: "path",
					Value:     fmt.Sprintf("/srv/www/site-%03d", parent),
				},
			}
		}
		before := intent.Resource{
			ID:            rid,
			Version:       6,
			Attributes:    attributes(strings.Replace(content, "Welcome", "Hello", 1)),
			AttributeHash: fmt.Sprintf("%064x", n),
			Requires:      requires,
		}
		after := intent.Resource{
			ID:            rid,
			Version:       7,
			Attributes:    attributes(content),
			AttributeHash: fmt.Sprintf("%064x", 1000+n),
			Requires:      requires,
		}
		if n%20 != 3 { // only some changed
			before.Attributes, before.AttributeHash = after.Attributes, after.AttributeHash
		}
		if n != 199 {
			versions[6] = append(versions[6], before)
		}
		e.History[rid] = []intent.ResourceHistory{
			{
				Date:          at.Add(-30 * time.Hour),
				Version:       6,
				Attributes:    before.Attributes,
				AttributeHash: before.AttributeHash,
				Requires:      requires,
			},
		}
		if n%20 == 3 {
			e.History[rid] = append(
				e.History[rid],
				intent.ResourceHistory{
					Date:          at.Add(-9 * time.Minute),
					Version:       7,
					Attributes:    after.Attributes,
					AttributeHash: after.AttributeHash,
					Requires:      requires,
				},
			)
		}
		state := intent.ResourceState{
			ID: rid, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
			LastRunAt: ptr(
				at.Add(-8 * time.Minute),
			), LastSuccess: ptr(at.Add(-8 * time.Minute)), LastDeployed: 7, DeployedHash: after.AttributeHash, IntentHash: after.AttributeHash,
		}
		switch n {
		case 23, 43:
			state.Compliance, state.LastRun, state.Attempts, state.LastSuccess = intent.NonCompliant, intent.RunFailed, 3, ptr(
				at.Add(-5*time.Hour),
			)
			if n == 23 {
				r.FailedFile = rid
				state.RetryAt = ptr(at.Add(90 * time.Second))
				r.Origins = originsOf(rid)
			}
			if n == 43 {
				state.Attempts, state.Parked, state.ParkedAt = 20, intent.ParkedAttempts, ptr(at.Add(-time.Hour))
				r.ParkedFile = rid
			}
		case 7:
			state.Parked, state.ParkedAt = intent.ParkedContested, ptr(at.Add(-3*time.Hour))
			state.Heals = []intent.Heal{{Of: "mode", At: at.Add(-3 * time.Hour)}}
			r.ContestedFile = rid
		case 24, 44, 45:
			state.Compliance, state.LastRun = intent.NonCompliant, intent.RunSkipped
		case 61:
			state.Compliance, state.Blocked, state.LastRun, state.LastRunAt, state.LastSuccess = intent.Undefined, intent.IsBlocked, intent.RunNew, nil, nil
			after.Undefined = []string{"content"}
		case 62:
			state.Blocked, state.Compliance, state.LastRun, state.LastRunAt = intent.IsBlocked, intent.HasUpdate, intent.RunNew, nil
		case 83, 103, 123, 143:
			state.IsDeploying = true
		case 163, 164, 165, 166, 167, 168:
			state.Compliance, state.LastRun, state.LastRunAt, state.LastSuccess = intent.HasUpdate, intent.RunNew, nil, nil
		case 186:
			state.Compliance, state.Drifted = intent.NonCompliant, true
			r.DriftedFile = rid
		case 5:
			r.HealthyDir = rid
		}
		versions[7] = append(versions[7], after)
		e.Rows = append(e.Rows, intent.ResourceRow{State: state, Version: 7, Requires: requires})
	}
	r.actions()
	e.Drifts = []intent.Drift{
		{
			ID:        id(90),
			Resource:  r.DriftedFile,
			Attribute: "mode",
			Desired:   json.RawMessage("644"),
			Found:     json.RawMessage("600"),
			Version:   7,
			Since:     at.Add(-8 * time.Minute),
			Seen:      at.Add(-8 * time.Minute),
		},
		{
			ID:        id(91),
			Resource:  r.ContestedFile,
			Attribute: "mode",
			Desired:   json.RawMessage("644"),
			Found:     json.RawMessage("777"),
			Version:   7,
			Since:     at.Add(-3 * time.Hour),
			Seen:      at.Add(-3 * time.Hour),
			Ended:     ptr(at.Add(-3*time.Hour + time.Second)),
			Ending:    intent.DriftHealed,
		},
		{
			ID:        id(92),
			Resource:  r.DriftedFile,
			Attribute: "content",
			Desired:   json.RawMessage(`"<p>Welcome.</p>"`),
			Found:     json.RawMessage(`"` + "<script>alert(1)</script>" + `"`),
			Version:   6,
			Since: at.Add(
				-40 * time.Hour,
			),
			Seen:   at.Add(-31 * time.Hour),
			Ended:  ptr(at.Add(-30 * time.Hour)),
			Ending: intent.DriftSuperseded,
		},
	}
	for n := 1; n <= 9; n++ {
		v := Ver{Version: intent.Version{
			Environment: e.ID, Number: n, Created: at.Add(-time.Duration(9-n) * 6 * time.Hour), Status: intent.VersionRetired, Total: len(versions[6]),
			Provenance: intent.Provenance{
				Compile: id(
					100 + n,
				), Commit: r.revision(fmt.Sprintf("%07x", 0xabc1230+n*7919), "", "x", 0).Commit, Branch: "main",
				Author: "Ida Lind", Email: "ida@example.com", Subject: "Move backups to the new share",
				Trigger: intent.Trigger{
					Type:    "webhook",
					Message: "GitHub announced a push",
				}, Modules: map[string]string{"std": "8.7.5", "fs": "1.4.0", "web": "0.3.0"},
				CompilerPython: "3.13", Ordain: "0.0.0-test",
			},
		}, Resources: versions[6]}
		v.Released = ptr(v.Created.Add(time.Second))
		switch n {
		case 7:
			v.Status, v.Created, v.Released, v.Total, v.Resources = intent.VersionActive, at.Add(
				-9*time.Minute+3*time.Second,
			), ptr(
				at.Add(-9*time.Minute+4*time.Second),
			), len(
				versions[7],
			), versions[7]
			v.Provenance.Compile, v.Provenance.Commit, v.Provenance.Author = r.Good, r.revision(
				"4c81d20",
				"",
				"x",
				0,
			).Commit, "Noor Haddad"
			v.Provenance.Subject = "Serve the new landing page"
		case 8:
			v.Status, v.Released, v.Created, v.Total = intent.VersionCandidate, nil, at.Add(-time.Minute), 2
			v.Resources = versions[7][:2]
		case 9:
			v.Resources = versions[7][:120]
			v.Status, v.Released, v.Created, v.Total, v.Hold = intent.VersionCandidate, nil, at.Add(
				-30*time.Second,
			), 120, r.hold(
				versions[7],
			)
		}
		e.Vers = append(e.Vers, v)
	}
	for n := range 10 {
		e.AgentList = append(
			e.AgentList,
			intent.Agent{Name: fmt.Sprintf("web%02d", n+1), Paused: n == 8, Resources: 20},
		)
		if n == 5 {
			e.AgentList[n].Breaker = intent.Breaker{
				Since:    ptr(at.Add(-20 * time.Minute)),
				ProbeAt:  ptr(at.Add(5 * time.Minute)),
				Pause:    8 * time.Minute,
				Failures: 9,
			}
		}
	}
	blue, old := strings.Repeat("0b", 20), strings.Repeat("1c", 20)
	e.Execs = intent.Executors{
		Here: true, Disk: 190 << 20, DiskMax: 2 << 30,
		Processes: []intent.ExecutorProcess{
			{
				Blueprint: old,
				Venv:      old,
				Modules:   []string{"fs"},
				PID:       4100,
				RSS:       31 << 20,
				Running:   1,
				Started:   at.Add(-2 * time.Hour),
				Ending:    true,
			},
			{
				Blueprint: blue,
				Venv:      old,
				Modules:   []string{"fs", "web"},
				PID:       4207,
				RSS:       38 << 20,
				Agents:    10,
				Started:   at.Add(-time.Hour),
				IdleSince: at.Add(-20 * time.Second),
			},
		},
		Folders: []intent.ExecutorFolder{
			{Kind: "venv", Hash: old, Size: 180 << 20, Alone: 4 << 20, LastUsed: at.Add(-time.Minute), InUse: true},
			{Kind: "code", Hash: blue, Size: 10 << 20, Alone: 10 << 20, LastUsed: at.Add(-30 * time.Minute)},
		},
	}
	e.Params = []intent.Parameter{
		{ID: id(80), Name: "region", Value: "north", Source: "user", Updated: at.Add(-time.Hour)},
		{
			ID:       id(81),
			Name:     "uptime",
			Value:    "93 days",
			Source:   "fact",
			Resource: r.HealthyDir,
			Updated:  at.Add(-time.Minute),
			Expires:  true,
		},
	}
}

// hold is that of a version that lost what comes after the first 120.
func (r *Rich) hold(before []intent.Resource) *intent.Hold {
	removal := intent.Removal{
		Before:      7,
		BeforeTotal: len(before),
		Live:        len(before),
		Total:       120,
		Protected:   []intent.Removed{},
	}
	types := map[string]int{}
	for _, one := range before[120:] {
		removal.First = append(removal.First, intent.Removed{ID: one.ID})
		types[one.ID.Type]++
	}
	removal.Gone = len(removal.First)
	removal.First = removal.First[:20]
	for _, name := range []string{"fs::File", "fs::Directory", "web::Site"} {
		removal.Types = append(removal.Types, intent.RemovedType{Type: name, Gone: types[name]})
	}
	return intent.Guard{Share: 20, Minimum: 10}.Judge(removal, r.At.Add(-29*time.Second))
}

// notices are what people should hear of: two of them unread.
func (r *Rich) notices() {
	r.git(r.At)
	r.promotions(r.At)
	r.Production.Notices = []intent.Notification{
		{
			ID:          id(60),
			Environment: r.Production.ID,
			Created:     r.At.Add(-50 * time.Hour),
			Last:        r.At.Add(-50 * time.Hour),
			Times:       1,
			Read:        true,
			Notice: intent.Notice{
				Severity: intent.SeverityError, Title: "Agent web06 cannot reach its target", URI: "/api/v2/agents", Message: "5 deployments in a row could not reach it. " + Evil},
		},
		{
			ID:          id(61),
			Environment: r.Production.ID,
			Created:     r.At.Add(-3 * time.Hour),
			Last:        r.At.Add(-3 * time.Minute),
			Times:       3,
			Notice: intent.Notice{
				Severity: intent.SeverityError, Title: "Compilation failed", URI: "/api/v2/compilereport/" + r.Failed.String(), Message: "the model has errors", Compile: &r.Failed},
		},
		{
			ID:          id(62),
			Environment: r.Production.ID,
			Created:     r.At.Add(-29 * time.Second),
			Last:        r.At.Add(-29 * time.Second),
			Times:       1,
			Notice: intent.Notice{
				Severity: intent.SeverityWarning, Title: "Version 9 is held", URI: "/api/v2/desiredstate/9", Message: "it takes away 84 of 204 resources"},
		},
	}
}

// actions writes what was done to the failed file.
func (r *Rich) actions() {
	e, at := r.Production, r.At
	change := map[string]intent.AttributeChange{
		"content": {Current: "<h1>Site 23</h1>\n<p>Hello.</p>\n", Desired: "<h1>Site 23</h1>\n<p>Welcome.</p>\n"},
		"mode":    {Current: 600, Desired: 644},
	}
	for n := range 3 {
		begin := at.Add(-time.Duration(8-3*n) * time.Minute)
		e.Acts = append(e.Acts, intent.Action{
			ID: id(
				60 + n,
			), Environment: e.ID, Kind: intent.ActionDeploy, Resource: r.FailedFile, Version: 7, Started: begin,
			Finished: ptr(
				begin.Add(412 * time.Millisecond),
			), Status: intent.StatusFailed, Change: intent.NoChange, Changes: change,
			Messages: []intent.LogLine{
				{Level: "INFO", Message: "Start of the deployment: a new version was released", Time: begin},
				{Level: "DEBUG", Message: "Calling read_resource", Time: begin.Add(4 * time.Millisecond)},
				{
					Level:   "DEBUG",
					Message: "Calling update_resource: content, mode differ",
					Time:    begin.Add(80 * time.Millisecond),
				},
				{Level: "WARNING", Message: "The disk is 99 % full " + Evil, Time: begin.Add(300 * time.Millisecond)},
				{
					Level:   "ERROR",
					Message: "No space left on device: /srv/www/site-023/index.html\nTraceback (most recent call last):\n  File \"fs/resources.py\", line 118, in update_resource\n    self._io.put(path, content)\nOSError: [Errno 28] No space left on device",
					Time:    begin.Add(410 * time.Millisecond),
				},
			},
		})
	}
	e.Acts = append(e.Acts, intent.Action{
		ID: id(
			66,
		), Environment: e.ID, Kind: intent.ActionDeploy, Resource: r.HealthyDir, Version: 7, Started: at.Add(-8 * time.Minute),
		Finished: ptr(
			at.Add(-8*time.Minute + 30*time.Millisecond),
		), Status: intent.StatusDeployed, Change: intent.Created,
		Changes: map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}},
		Messages: []intent.LogLine{
			{
				Level:     "INFO",
				Message:   "End of the deployment",
				Time:      at.Add(-8 * time.Minute),
				Arguments: json.RawMessage(`{"changes":1}`),
			},
		},
	})
	e.Dries = []Dry{{
		DryRun: intent.DryRun{
			ID:          r.DryRunID,
			Environment: e.ID,
			Version:     7,
			Date:        at.Add(-2 * time.Minute),
			Total:       204,
			Todo:        0,
			Ended:       ptr(at.Add(-time.Minute)),
			Ending:      intent.DryRunDone,
			Base:        6,
			Unknown:     2,
		},
		Diffs: []intent.ResourceDiff{
			{ID: r.FailedFile, Kind: intent.DiffModified, Attributes: change},
			{ID: r.HealthyDir, Kind: intent.DiffUnmodified},
			{
				ID:     intent.ResourceID{Type: "fs::File", Agent: "web09", Attribute: "path", Value: "/etc/motd"},
				Kind:   intent.DiffAgentDown,
				Reason: "no route to web09 " + Evil,
			},
			{
				ID: intent.ResourceID{
					Type:      "fs::File",
					Agent:     "web03",
					Attribute: "path",
					Value:     "/srv/www/inside.html",
				},
				Kind:   intent.DiffUnknown,
				Reason: "no such folder",
				Behind: intent.ResourceID{
					Type:      "fs::File",
					Agent:     "web03",
					Attribute: "path",
					Value:     "/srv/www/new.html",
				},
				Attributes: map[string]intent.AttributeChange{
					"handler": {Current: "FAILED", Desired: "no such folder"},
				},
			},
			{
				ID: intent.ResourceID{
					Type:      "fs::File",
					Agent:     "web02",
					Attribute: "path",
					Value:     "/srv/www/old.html",
				},
				Kind:       intent.DiffDeleted,
				Attributes: map[string]intent.AttributeChange{"purged": {Current: false, Desired: true}},
			},
			{
				ID: intent.ResourceID{
					Type:      "fs::File",
					Agent:     "web03",
					Attribute: "path",
					Value:     "/srv/www/new.html",
				},
				Kind:       intent.DiffAdded,
				Attributes: map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}},
			},
		},
	}}
}

// originsOf says who decided the attributes of a file of the site.
func originsOf(rid intent.ResourceID) map[intent.ResourceID][]provenance.Field {
	commit := &provenance.Commit{
		ID:      "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
		Author:  "Noor <b>Haddad",
		Email:   "noor@example.com",
		Subject: "A page",
		Date:    time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
	}
	content := provenance.Setting{
		Statement: provenance.Statement{
			Kind: provenance.Argument,
			Place: provenance.Place{
				File:    "main.cf",
				Line:    12,
				EndLine: 12,
				Column:  9,
				Source:  "        content = page",
			},
		},
		Commit: commit,
		Steps: []provenance.Step{{
			Instance: "web::Site[name=shop]", Call: provenance.Call{Type: "web::Site", Implementation: "web::site", At: provenance.Place{File: "libs/web/model/_init.cf", Line: 20}},
			Made: provenance.Place{File: "main.cf", Line: 3}, MadeCommit: commit,
		}},
	}
	hash := provenance.Setting{
		Statement: provenance.Statement{
			Kind:   provenance.Function,
			Plugin: "File.get_hash",
			Place:  provenance.Place{File: "inmanta_plugins/fs/resources.py", Line: 40},
		},
		Steps: []provenance.Step{}, Inputs: []provenance.Field{{Name: "content", Settings: []provenance.Setting{content}}},
	}
	return map[intent.ResourceID][]provenance.Field{rid: {
		{Name: "content", Settings: []provenance.Setting{content}},
		{Name: "purged", Settings: []provenance.Setting{hash}},
	}}
}
