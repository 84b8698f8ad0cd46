package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func want(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || !fault.Is(err, kind) {
		t.Fatalf("got %v, want a fault that is %s", err, kind)
	}
}

// newEnvironment makes an environment in a project of its own.
func newEnvironment(t testing.TB, s *store.Store) intent.EnvironmentID {
	t.Helper()
	p := intent.Project{ID: uuid.New(), Name: "project " + uuid.NewString()}
	must(t, s.CreateProject(t.Context(), p))
	e := intent.Environment{
		ID:        uuid.New(),
		ProjectID: p.ID,
		Name:      "test",
		Created:   epoch,
		Source:    intent.Source{URL: "file:///repo", Branch: "main"},
	}
	must(t, s.CreateEnvironment(t.Context(), e, nil))
	return e.ID
}

func file(agent string, i int) intent.ResourceID {
	return intent.ResourceID{Type: "fs::File", Agent: agent, Attribute: "path", Value: fmt.Sprintf("/etc/f%05d", i)}
}

// Resource i lives on one of four agents and, if chained, requires the one before it on the same agent.
func resources(n int) []intent.Resource {
	out := make([]intent.Resource, n)
	for i := range out {
		id := file(fmt.Sprintf("host%d", i%4), i)
		out[i] = intent.Resource{
			ID: id,
			Attributes: json.RawMessage(
				fmt.Sprintf(
					`{"path":%q,"content":"number %d","mode":644,"owner":"root","group":"root",`+
						`"purged":false,"reload":false}`,
					id.Value,
					i,
				),
			),
			AttributeHash: fmt.Sprintf("%064d", i),
			SendEvent:     true,
		}
		if i >= 4 {
			out[i].Requires = []intent.ResourceID{file(fmt.Sprintf("host%d", i%4), i-4)}
		}
	}
	return out
}

func version(env intent.EnvironmentID, rs []intent.Resource) intent.NewVersion {
	return intent.NewVersion{
		Environment: env, Resources: rs,
		Provenance: intent.Provenance{
			Compile: uuid.New(),
			Commit:  "0123456789abcdef",
			Trigger: intent.Trigger{Type: "api"},
		},
		Code: []intent.ResourceCode{{Type: "fs::File", Requirements: []string{"x"},
			Sources: []intent.SourceFile{
				{Module: "inmanta_plugins.fs", Path: "inmanta_plugins/fs/__init__.py", Hash: "ab"},
			}}},
		Pip: intent.PipConfig{IndexURL: "https://index.example", Pre: new(true)},
	}
}

func changed(rs []intent.Resource, i int, hash string) []intent.Resource {
	out := append([]intent.Resource(nil), rs...)
	out[i].Attributes = json.RawMessage(fmt.Sprintf(`{"path":"x","content":%q}`, hash))
	out[i].AttributeHash = hash
	return out
}

func release(t testing.TB, s *store.Store, env intent.EnvironmentID, rs []intent.Resource) int {
	t.Helper()
	n := get(s.StoreVersion(t.Context(), version(env, rs), epoch))(t)
	must(t, s.ReleaseVersion(t.Context(), env, n, epoch))
	return n
}

func states(t testing.TB, s *store.Store, env intent.EnvironmentID) map[intent.ResourceID]intent.ResourceState {
	t.Helper()
	out := map[intent.ResourceID]intent.ResourceState{}
	for _, st := range get(s.States(t.Context(), env))(t) {
		out[st.ID] = st
	}
	return out
}

// deployed is the end of a successful deployment of a resource as it is now.
func deployed(st intent.ResourceState, version, second int) intent.FinishedAction {
	at := after(second)
	st.Compliance, st.LastRun, st.LastRunAt, st.LastSuccess = intent.Compliant, intent.RunSuccessful, &at, &at
	st.DeployedHash, st.LastDeployed, st.IsDeploying, st.Attempts = st.IntentHash, version, false, 0
	return intent.FinishedAction{State: st, Action: intent.Action{
		ID: uuid.New(), Kind: intent.ActionDeploy, Resource: st.ID, Version: version, Started: after(second - 1),
		Finished: &at,
		Status:   intent.StatusDeployed, Change: intent.Created,
		Changes:  map[string]intent.AttributeChange{"purged": {Current: true, Desired: false}},
		Messages: []intent.LogLine{{Level: "INFO", Message: "done", Time: at}},
	}}
}

func TestEveryStatementIsValidSQL(t *testing.T) {
	t.Parallel()
	store.CheckStatements(t, storetest.URL(t))
}

func TestSchemaChangesAreNeverEdited(t *testing.T) {
	t.Parallel()
	store.CheckMigrations(t, storetest.URL(t))
}

func TestTwoServersMigrateAtTheSameTime(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
}

func TestWrongAddressesAreExplained(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), store.Config{URL: "postgres://user:hunter2@[", Logger: storetest.Logger(t)})
	want(t, err, fault.Invalid)
	if s := err.Error(); strings.Contains(s, "hunter2") {
		t.Errorf("the password is in the message: %s", s)
	}
	_, err = store.Open(t.Context(),
		store.Config{URL: "postgres:///x?host=" + t.TempDir(), Logger: storetest.Logger(t)})
	want(t, err, fault.Unavailable)
}

func TestProjectsAndEnvironments(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	b, a := intent.Project{ID: uuid.New(), Name: "b"}, intent.Project{ID: uuid.New(), Name: "a"}
	must(t, s.CreateProject(ctx, b))
	must(t, s.CreateProject(ctx, a))
	want(t, s.CreateProject(ctx, intent.Project{ID: uuid.New(), Name: "a"}), fault.Conflict)
	if all := get(s.Projects(ctx))(t); len(all) != 2 || all[0] != a || all[1] != b {
		t.Fatalf("projects: %v", all)
	}
	want(t, s.RenameProject(ctx, uuid.New(), "c"), fault.NotFound)
	want(t, s.RenameProject(ctx, a.ID, "b"), fault.Conflict)
	_, err := s.Project(ctx, uuid.New())
	want(t, err, fault.NotFound)

	e := intent.Environment{ID: uuid.New(), ProjectID: a.ID, Name: "prod", Created: epoch, Description: "d", Icon: "i",
		Source: intent.Source{URL: "https://example.org/r.git", Branch: "main", Subdir: "sub"}}
	must(t, s.CreateEnvironment(ctx, e, nil))
	want(
		t,
		s.CreateEnvironment(ctx, intent.Environment{ID: uuid.New(), ProjectID: a.ID, Name: "prod"}, nil),
		fault.Conflict,
	)
	want(t, s.CreateEnvironment(ctx, intent.Environment{ID: uuid.New(), ProjectID: uuid.New(), Name: "x"}, nil),
		fault.NotFound)
	must(t, s.SetSetting(ctx, e.ID, "auto_deploy", false))
	must(t, s.SetSetting(ctx, e.ID, "git_poll_interval", 5))
	must(t, s.SetSetting(ctx, e.ID, "git_poll_interval", nil))
	want(t, s.SetSetting(ctx, uuid.New(), "auto_deploy", true), fault.NotFound)
	// Settings decided by project.yml: the second time it names other settings, and the first ones keep their values
	// and may be changed again.
	must(
		t,
		s.ProtectSettings(ctx, e.ID, map[string]any{"recompile_backoff": 2.5, "notification_retention": 9},
			"project.yml"),
	)
	must(t, s.ProtectSettings(ctx, e.ID, map[string]any{"notification_retention": 10}, "project.yml"))
	if got := get(s.Environment(ctx, e.ID))(t); len(got.Protected) != 1 ||
		got.Protected["notification_retention"] != "project.yml" ||
		got.Int("notification_retention") != 10 ||
		got.Float("recompile_backoff") != 2.5 ||
		got.Bool("auto_deploy") {
		t.Fatalf("environment: %+v", got)
	}
	must(t, s.ProtectSettings(ctx, e.ID, nil, "project.yml"))
	if got := get(s.Environment(ctx, e.ID))(t); len(got.Protected) != 0 || got.Int("notification_retention") != 10 {
		t.Fatalf("environment: %+v", got)
	}
	want(t, s.ProtectSettings(ctx, uuid.New(), nil, "project.yml"), fault.NotFound)
	must(t, s.SetHalted(ctx, e.ID, true, intent.Actor{By: "test", At: time.Now()}))
	must(t, s.SetHalted(ctx, e.ID, true, intent.Actor{By: "test", At: time.Now()}))
	must(t, s.SetSecret(ctx, e.ID, "webhook", []byte("sealed")))
	must(t, s.SetSecret(ctx, e.ID, "webhook", []byte("sealed anew")))
	must(t, s.SetSecret(ctx, e.ID, "git-username", []byte("x")))
	must(t, s.SetSecret(ctx, e.ID, "git-username", nil))
	if secrets := get(s.Secrets(ctx, e.ID))(t); len(secrets) != 1 || string(secrets["webhook"]) != "sealed anew" {
		t.Fatalf("secrets: %q", secrets)
	}
	got := get(s.Environment(ctx, e.ID))(t)
	if got.ProjectName != "a" || got.Source != e.Source || !got.Halted || got.Bool("auto_deploy") ||
		got.Int("git_poll_interval") != 60 ||
		!got.Created.Equal(epoch) {
		t.Fatalf("environment: %+v", got)
	}
	got.Name, got.ProjectID, got.Source.Branch = "live", b.ID, "stable"
	must(t, s.UpdateEnvironment(ctx, got))
	if again := get(s.Environments(ctx))(t); len(again) != 1 || again[0].Name != "live" ||
		again[0].ProjectName != "b" ||
		again[0].Source.Branch != "stable" ||
		!again[0].Halted {
		t.Fatalf("environments: %+v", again)
	}
	must(t, s.DeleteProject(ctx, b.ID))
	_, err = s.Environment(ctx, e.ID)
	want(t, err, fault.NotFound)
	want(t, s.DeleteProject(ctx, b.ID), fault.NotFound)
}

// Clearing an environment deletes all but the environment itself, its settings and secrets.
func TestClearedEnvironmentKeepsSettingsAndSecrets(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	must(t, s.SetSetting(ctx, env, "auto_deploy", false))
	must(t, s.SetSecret(ctx, env, "webhook", []byte("sealed")))
	must(t, s.EnqueueCompile(ctx, intent.Compile{ID: uuid.New(), Environment: env, Requested: epoch}))
	n := release(t, s, env, resources(5))
	must(
		t,
		s.CreateDryRun(ctx,
			intent.DryRun{ID: uuid.New(), Environment: env, Version: n, Date: epoch, Total: 5, Todo: 5}),
	)
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{deployed(states(t, s, env)[file("host0", 0)], n, 5)}))
	must(t, s.SetParameter(ctx, env, intent.Parameter{Name: "p", Updated: epoch}))
	must(t, s.ClearEnvironment(ctx, env))
	if e := get(s.Environment(ctx, env))(t); e.Bool("auto_deploy") {
		t.Error("the settings are gone")
	}
	if len(get(s.Secrets(ctx, env))(t)) != 1 {
		t.Error("the secrets are gone")
	}
	if v := get(s.ActiveVersion(ctx, env))(t); v != nil {
		t.Errorf("there is still a version: %+v", v)
	}
	if left := get(s.States(ctx, env))(t); len(left) != 0 {
		t.Errorf("there are still resources: %v", left)
	}
	if left := get(s.OpenCompiles(ctx, env))(t); len(left) != 0 {
		t.Errorf("there are still compiles: %v", left)
	}
	if left := get(s.Actions(ctx, env, intent.ResourceID{}, "", 0))(t); len(left) != 0 {
		t.Errorf("there are still actions: %v", left)
	}
	if again := release(t, s, env, resources(5)); again <= n {
		t.Errorf("version %d means two things", again)
	}
	must(t, s.DeleteEnvironment(ctx, env))
	want(t, s.ClearEnvironment(ctx, env), fault.NotFound)
	want(t, s.SetHalted(ctx, env, true, intent.Actor{By: "test", At: time.Now()}), fault.NotFound)
	if _, err := s.ActiveVersion(ctx, env); !fault.Is(err, fault.NotFound) || errors.Unwrap(err) != nil {
		t.Errorf("active version of a deleted environment: %v", err)
	}
}
