package console

import (
	"context"
	"strings"
	"testing"

	"ordain.dev/ordain/api/apitest"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge"
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

// stopped is a control whose previews tell of what keeps a merge from being deployed.
type stopped struct {
	*apitest.Rich
	report forge.Report
}

func (s stopped) PullReport(context.Context, intent.Environment, intent.PullRequest) (forge.Report, error) {
	return s.report, nil
}

// The page of a pull request says what would become of it after the merge: that
// its commit would be refused, that its version would be held, that changes would
// wait. It says nothing of the kind where nothing is in the way.
func TestAPreviewSaysWhatWouldStopIt(t *testing.T) {
	r := apitest.NewRich(present)
	const strong, end = "<strong>It would ", "</p>"
	for _, c := range []struct {
		report forge.Report
		want   string
	}{
		{forge.Report{Refused: "1234567 is not signed; sign it <b>"}, "be refused as it is:</strong> 1234567 is not signed; sign it &lt;b&gt;."},
		{forge.Report{Hold: &intent.Hold{Text: "it removes 9 of 10 resources"}}, "be held:</strong> it removes 9 of 10 resources."},
		{forge.Report{Windows: []string{"until 22:00"}}, "wait:</strong> until 22:00."},
		{forge.Report{}, ""},
	} {
		body := get(t, newConsole(t, stopped{r, c.report}), "/e/"+r.Production.ID.String()+"/pulls/7").Body.String()
		_, said, _ := strings.Cut(body, strong)
		said, _, _ = strings.Cut(said, end)
		if said != c.want || strings.Count(body, strong) > 1 {
			t.Errorf("it says %q, want %q", said, c.want)
		}
	}
}
