package control_test

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
)

// Where an environment asks for signatures, the preview of a pull request says
// that its commit would be refused, before it is merged.
func TestAPreviewTellsOfAMissingSignature(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	refused := func(head string, state intent.PullState) string {
		t.Helper()
		e, err := s.store.Environment(t.Context(), s.env)
		if err != nil {
			t.Fatal(err)
		}
		p := intent.PullRequest{Environment: s.env, Number: 7, Head: head, State: state}
		r, err := s.PullReview(t.Context(), e, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		comment := forge.Report{Pull: p, Review: r}.Text()
		if told := strings.Contains(comment, "refused"); told != (r.Refused != "") {
			t.Errorf("the comment on %q:\n%s", r.Refused, comment)
		}
		return r.Refused
	}
	for _, step := range []struct{ verify, head, want string }{
		{"off", "unsigned", ""}, {"all", "unsigned", "it is not signed; sign it"}, {"all", "signed", ""}, {"tags",
			"unsigned", ""},
		{"tip", "unsigned", "it is not signed; sign it (or merge it with a commit that is " +
			"signed)"}, {"tip", "rewritten", ""},
	} {
		for name, value := range map[string]any{"git_allowed_signers": "ada ssh-ed25519 " +
			"AAAAC3NzaC1lZDI1NTE5AAAAINWhsbhRM+Gz8vOvVGDdEOMPZD1pDuwlb8VV+X5PYxZE", "git_verify": step.verify} {
			if err := s.SetSetting(t.Context(), s.env, name, value); err != nil {
				t.Fatal(err)
			}
		}
		if got := refused(step.head, intent.PullIsOpen); got != step.want {
			t.Errorf("%v: %q", step, got)
		}
	}
	if got := refused("unsigned", intent.PullIsMerged); got != "" {
		t.Errorf("merged, it says %q", got)
	}
}
