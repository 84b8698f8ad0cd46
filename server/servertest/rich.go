package servertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// Present is what the clock of a rich server shows at first.
var Present = time.Date(2026, 11, 21, 16, 0, 0, 123456000, time.UTC)

// Evil is text as a hostile model, forge or handler would write it.
const Evil = `<script>alert("x")</script><img src=x onerror=alert(1)>`

// RepositoryURL is the repository of a rich server's environments.
const RepositoryURL = "https://git.example.com/infra/model.git"

// Rich is a server with a history. Ids and times are the same every time, but for the ids that the server itself makes
// up, which differ from one test process to the next.
//
//	production  204 resources on ten agents, in every state; follows staging
//	staging     four resources, one commit ahead of production
//	sandbox     nothing, and bound to no repository
type Rich struct {
	*Server
	Project    intent.Project
	Production intent.Environment
	Staging    intent.Environment
	Sandbox    intent.Environment

	Running intent.CompileID // a compile of production that has not ended
	Failed  intent.CompileID // a compile of production whose model has an error
	Good    intent.CompileID // the compile of version 7, which is active

	DryRun     intent.ActionID       // of version 7
	Preview    intent.ActionID       // the dry run of pull request 7
	Delivery   uuid.UUID             // a webhook that started a compile
	Notices    []intent.Notification // of production, oldest first
	Process    int64                 // a process of production that waits
	Dead       int64                 // a process of staging that died
	Waiting    intent.Promotion      // of the commit that staging has and production has not
	Blocked    string                // the commit that was rolled back
	PullHead   string                // of pull request 7, which a colleague opened and which has a preview
	Stranger   string                // the head of pull request 12, which a stranger opened
	FailedFile intent.ResourceID     // its last deployment failed
	// ParkedFile failed too often, ContestedFile is changed by somebody else again and again, DriftedFile drifted.
	ParkedFile, ContestedFile, DriftedFile intent.ResourceID
	HealthyDir                             intent.ResourceID
	DiscoveryDir                           intent.ResourceID // it discovered HealthyDir and a file
}

// id returns one of the ids that never change.
func id(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("%08x-0000-4000-8000-%012x", 0xa0000000+n, n))
}

// The ids of what a seed makes.
var (
	projectID, productionID, stagingID, sandboxID = id(1), id(10), id(11), id(12)
	runningID, failedID                           = id(30), id(29)
	dryRunID, previewID                           = id(70), id(71)
)

// The commits of pull requests.
const (
	pullHead = "1234567890123456789012345678901234567890"
	stranger = "feedfacefeedfacefeedfacefeedfacefeedface"
)

func ptr[T any](v T) *T { return &v }

// history is the database of rich servers, filled once per test process.
var history = storetest.Template{Fill: func(ctx context.Context, records *store.Store) (err error) {
	dir, err := os.MkdirTemp("", "ordain-servertest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := open(records, dir, slog.New(slog.NewTextHandler(io.Discard, nil)), Present)
	if err != nil {
		return err
	}
	commit, err := mirrorModel(ctx, s.Log, dir)
	if err != nil {
		return err
	}
	return (&seed{Server: s, ctx: ctx, deployed: commit}).fill()
}}

// NewRich returns a server with a history.
func NewRich(t testing.TB) *Rich {
	t.Helper()
	dir := t.TempDir()
	s, err := open(history.Open(t), dir, storetest.Logger(t), Present)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Control.Close)
	s.Executors = executors()
	if _, err := mirrorModel(t.Context(), s.Log, dir); err != nil {
		t.Fatal(err)
	}
	r := &Rich{
		Server: s, Running: runningID, Failed: failedID, DryRun: dryRunID, Preview: previewID, Delivery: id(901),
		Blocked: commit("5e1f00d"), PullHead: pullHead, Stranger: stranger,
		FailedFile: siteResource(23), ParkedFile: siteResource(43), ContestedFile: siteResource(7),
		DriftedFile: siteResource(186),
		HealthyDir:  siteResource(5), DiscoveryDir: siteResource(10),
	}
	if err := r.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// read fills in what the server made up.
func (r *Rich) read(ctx context.Context) (err error) {
	if r.Project, err = r.Store.Project(ctx, projectID); err != nil {
		return err
	}
	for _, e := range []struct {
		id   intent.EnvironmentID
		into *intent.Environment
	}{{productionID, &r.Production}, {stagingID, &r.Staging}, {sandboxID, &r.Sandbox}} {
		if *e.into, err = r.Store.Environment(ctx, e.id); err != nil {
			return err
		}
	}
	active, err := r.Store.ActiveVersion(ctx, productionID)
	if err != nil {
		return err
	}
	r.Good = active.Provenance.Compile
	page, err := r.Store.Notifications(ctx, productionID, intent.ListQuery{Sort: "created"})
	if err != nil {
		return err
	}
	r.Notices = page.Items
	for env, into := range map[intent.EnvironmentID]*int64{productionID: &r.Process, stagingID: &r.Dead} {
		state := intent.ProcessDead
		if env == productionID {
			state = intent.ProcessWaiting
		}
		found, err := r.Store.Processes(ctx, env, intent.ListQuery{
			Filters: map[string][]string{"state": {string(state)}},
		})
		if err != nil {
			return err
		}
		if len(found.Items) > 0 {
			*into = found.Items[0].ID
		}
	}
	promotions, err := r.Store.Promotions(ctx, productionID, 1)
	if err == nil && len(promotions) == 1 {
		r.Waiting = promotions[0]
	}
	return err
}

// commit lengthens the beginning of a commit to a whole one.
func commit(begin string) string { return (begin + strings.Repeat("0", 40))[:40] }

// siteResource returns the id of one of production's resources, 0 to 203.
func siteResource(n int) intent.ResourceID {
	r := intent.ResourceID{
		Type: "fs::File", Agent: fmt.Sprintf("web%02d", n%10+1), Attribute: "path",
		Value: fmt.Sprintf("/srv/www/site-%03d/index.html", n),
	}
	switch {
	case n%5 == 0:
		r.Type, r.Value = "fs::Directory", fmt.Sprintf("/srv/www/site-%03d", n)
	case n%17 == 1:
		r.Type, r.Attribute, r.Value = "web::Site", "name", fmt.Sprintf("site-%03d.example.com", n)
	}
	return r
}

// executors are two processes that run handlers, one of them about to end, and the folders that they use.
func executors() intent.Executors {
	blue, old := strings.Repeat("0b", 20), strings.Repeat("1c", 20)
	return intent.Executors{
		Here: true, Disk: 190 << 20, DiskMax: 2 << 30,
		Processes: []intent.ExecutorProcess{
			{
				Blueprint: old, Venv: old, Modules: []string{"fs"}, PID: 4100, RSS: 31 << 20, Running: 1,
				Started: Present.Add(-2 * time.Hour), Ending: true,
			},
			{
				Blueprint: blue, Venv: old, Modules: []string{"fs", "web"}, PID: 4207, RSS: 38 << 20, Agents: 10,
				Started: Present.Add(-time.Hour), IdleSince: Present.Add(-20 * time.Second),
			},
		},
		Folders: []intent.ExecutorFolder{
			{
				Kind: "venv", Hash: old, Size: 180 << 20, Alone: 4 << 20, LastUsed: Present.Add(-time.Minute),
				InUse: true,
			},
			{Kind: "code", Hash: blue, Size: 10 << 20, Alone: 10 << 20, LastUsed: Present.Add(-30 * time.Minute)},
		},
	}
}
