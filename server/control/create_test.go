package control_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// Staging took a commit back. Production is created to follow it while that commit is still the tip of the branch: it
// deploys nothing, then the fix that staging deploys. Nobody had to be faster than the keeper.
func TestANewEnvironmentFollowsFromTheBeginning(t *testing.T) {
	t.Parallel()
	f := &follower{stage: newStage(t), clock: &hand{}}
	f.deploys("c1")
	f.deploys("bad-commit")
	person := control.As(t.Context(), "ida", "the shop is down")
	if _, err := f.RollBack(person, f.stage.env, 0); err != nil {
		t.Fatal(err)
	}
	staging, err := f.store.Environment(t.Context(), f.stage.env)
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.CreateEnvironment(person, control.NewEnvironment{
		Environment: intent.Environment{
			ProjectID: staging.ProjectID, Name: "production", Source: staging.Source, Halted: true,
			Settings: map[string]any{"follow": "e", "follow_approval": "true", "follow_compliant": false},
		},
		Secrets: map[string]string{source.SecretWebhook: "hush"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.env = made.ID
	e, err := f.store.Environment(t.Context(), f.env)
	if err != nil || !e.Halted || e.HaltedBy != "ida" || e.Follows() != "e" || !e.Bool("follow_approval") {
		t.Errorf("%+v, %v", e, err)
	}
	if did, err := f.store.Interventions(t.Context(), f.env, 9); err != nil || len(did) != 1 ||
		did[0].Kind != intent.DidHalt {
		t.Errorf("%+v, %v", did, err)
	}
	if sealed, err := f.store.Secrets(t.Context(), f.env); err != nil || len(sealed) != 1 {
		t.Errorf("secrets %v, %v", sealed, err)
	}
	if err := f.Resume(person, f.env); err != nil {
		t.Fatal(err)
	}
	if err := f.SourceMoved(t.Context(), f.env, "bad-commit", "poll", ""); err != nil {
		t.Fatal(err)
	}
	f.deploys("the-fix")
	f.waitsFor("the-fix", "approval of this commit")
	if page, err := f.store.Compiles(t.Context(), f.env, intent.ListQuery{}); err != nil || len(page.Items) != 0 {
		t.Errorf("compiled before anything was promoted: %+v, %v", page.Items, err)
	}
	if err := f.ApprovePromotion(person, f.env, "the-fix"); err != nil {
		t.Fatal(err)
	}
	f.has("the-fix")
}

// Whatever is wrong with a new environment is found before anything of it is written.
func TestANewEnvironmentIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	e := s.environment()
	for what, c := range map[string]struct {
		change func(*control.NewEnvironment)
		says   string
	}{
		"follows nobody": {setting("follow", "nobody"), "there is no environment nobody"},
		"follows itself": {setting("follow", "new"), "cannot follow itself"},
		"another source": {func(n *control.NewEnvironment) {
			setting("follow", "e")(n)
			n.Environment.Source.URL = "/b"
		}, "another repository"},
		"no such setting": {setting("colour", "red"), "there is no setting colour"},
		"not a number":    {setting("follow_soak", "soon"), "follow_soak"},
		"not a signer":    {setting("git_allowed_signers", "ida ssh-nonsense"), "git_allowed_signers"},
		"not a window": {
			setting("maintenance_windows", map[string]any{"a": map[string]any{"kind": "door"}}), "maintenance_windows",
		},
		"no such secret": {secretOf("colour", "red"), "there is no secret called colour"},
		"a broken key":   {secretOf(source.SecretSSHKey, "red"), "is not a private key"},
		"not a tag": {
			func(n *control.NewEnvironment) { n.Environment.Tags = []string{"Not a tag"} }, "is not a tag",
		},
		"two lines in one":  {secretOf(source.SecretGitPassword, "a\nb"), "has several lines"},
		"without its name":  {func(n *control.NewEnvironment) { n.Environment.Name = " " }, "needs a name"},
		"the server's file": {secretOf("variable:PYTHONPATH", "/tmp"), "is the server's own"},
	} {
		n := control.NewEnvironment{
			Environment: intent.Environment{ProjectID: e.ProjectID, Name: "new", Source: e.Source},
			Secrets:     map[string]string{source.SecretWebhook: "hush"},
		}
		c.change(&n)
		_, err := s.CreateEnvironment(t.Context(), n)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") ||
			!fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Others can wait for an environment before it is there: with this one they would follow each other.
	if err := s.store.SetSetting(t.Context(), e.ID, "follow", "new"); err != nil {
		t.Fatal(err)
	}
	n := control.NewEnvironment{Environment: intent.Environment{ProjectID: e.ProjectID, Name: "new", Source: e.Source}}
	setting("follow", "e")(&n)
	if _, err := s.CreateEnvironment(t.Context(), n); err == nil || !strings.Contains(err.Error(), "a circle") {
		t.Errorf("a circle: %v", err)
	}
	if all, err := s.store.Environments(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d environments, %v", len(all), err)
	}
}

func setting(name string, value any) func(*control.NewEnvironment) {
	return func(n *control.NewEnvironment) { n.Environment.Settings = map[string]any{name: value} }
}

func secretOf(name, value string) func(*control.NewEnvironment) {
	return func(n *control.NewEnvironment) { n.Secrets[name] = value }
}
