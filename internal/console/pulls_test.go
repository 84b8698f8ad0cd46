package console

import (
	"strings"
	"testing"

	"ordain.dev/ordain/api/apitest"
	"ordain.dev/ordain/internal/intent"
)

// Somebody connects a first forge: the page says what is missing, until nothing
// is; and the webhook of a pull request leads to its preview.
func TestWhatAForgeLacks(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	page := func() string { return get(t, h, "/e/"+r.Staging.ID.String()+"/pulls").Body.String() }
	says := func(want, not string) {
		t.Helper()
		if body := page(); !strings.Contains(body, want) || strings.Contains(body, not) {
			t.Errorf("want %q and not %q:\n%s", want, not, body)
		}
	}
	says("no token of the forge is set", "One that is opened shows here by itself")
	says("pull_previews</a> is off", "ENVIRONMENT forge-token")
	if err := r.SetSetting(t.Context(), r.Staging.ID, "pull_previews", "trusted"); err != nil {
		t.Fatal(err)
	}
	says("no token of the forge is set", "is off")
	if err := r.SetSecret(t.Context(), r.Staging.ID, forgeToken, "x"); err != nil {
		t.Fatal(err)
	}
	says("One that is opened shows here by itself", "no token")

	env := "/e/" + r.Production.ID.String()
	for _, want := range []string{"failure of 1234567 as ordain/production/compile", "comment on pull request 7"} {
		if body := get(t, h, env+"/pulls").Body.String(); !strings.Contains(body, want) {
			t.Errorf("nothing of %q:\n%s", want, body)
		}
	}
	r.Do(func() {
		for i, d := range r.Production.Hooks {
			if d.Event.Pull != nil {
				r.Production.Hooks[i].Outcomes[0].State, r.Production.Hooks[i].Outcomes[0].Reason = intent.OutcomeStarted, "the forge is asked about pull request 12"
			}
		}
	})
	if body := get(t, h, env+"/deliveries").Body.String(); !strings.Contains(body, `href="`+env+`/pulls/12"`) {
		t.Errorf("no way to the preview:\n%s", body)
	}
}
