package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/tool"
)

// Someone wonders why a resource is not deployed: its page says that a freeze holds it, the overview says until when.
// They let changes through, with their name and a reason; the page no longer mentions the freeze. They end the
// override, and the freeze holds again. Everybody can read all of it.
func TestJourneyLettingChangesThrough(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	r.SetClock(time.Now()) // overrides end by the clock of the database
	hourly := fmt.Sprintf("0 %d * * *", r.Now().UTC().Hour())
	must(t, r.Control.SetSetting(t.Context(), r.Production.ID, "maintenance_windows", map[string]any{
		"holidays": map[string]any{"kind": "freeze", "cron": hourly, "duration": 7200},
		"nightly":  map[string]any{"cron": "0 2 * * *", "duration": 3600, "agents": []any{"nobody*"}},
	}))
	b := browse(t, h)
	b.look(1280, 900, "light")
	env, resource := envURL(r.Production.ID), resourceURL(r.Production.ID, r.FailedFile)
	why := func(frozen bool) {
		t.Helper()
		b.open(resource)
		b.until(`document.querySelector('#why summary')`)
		b.do(chromedp.Click(chromedp.CSS("#why summary")))
		b.until(`document.querySelector('#why').open`)
		text := eval[string](b, `document.querySelector('#why').textContent`)
		if got := strings.Contains(text, "it is frozen by `holidays`, changes may start"); got != frozen {
			t.Errorf("frozen: %v, want %v: %s", got, frozen, text)
		}
		b.accessible("why a resource is not deployed")
	}
	why(true)
	b.open(env)
	for _, row := range []string{`/frozen\s*holidays\s*until/`, `/nightly.*agents nobody/`} {
		b.until(`[...document.querySelectorAll('[aria-label="Maintenance windows"] li')]
			.some(li => ` + row + `.test(li.textContent))`)
	}
	b.do(
		chromedp.Click(chromedp.CSS("#override summary")), chromedp.SendKeys(chromedp.CSS("#ov-by"), "Ida"),
		chromedp.SendKeys(chromedp.CSS("#ov-reason"), "the router <is> down"),
	)
	b.accessible("the form of an override")
	b.do(chromedp.Click(chromedp.CSS("#override button.harm")))
	b.until(`document.querySelector('.banner.done')`)
	b.until(`[...document.querySelectorAll('#summary .banner')].some(x =>
		x.textContent.includes('Ida lets changes through') && x.textContent.includes('the router <is> down'))`)
	why(false)
	b.open(env + "/agents")
	b.until(`document.getElementById('agentlist').textContent.includes('Ida lets its changes through until')`)
	b.open(env)
	b.do(chromedp.Click(chromedp.CSS(`#summary form[action$="/override/end"] button`)))
	b.until(`document.querySelector('.banner.done') &&
		!document.querySelector('#summary form[action$="/override/end"]')`)
	why(true)
	b.open(env + "/agents")
	b.until("document.getElementById('agentlist').textContent.includes('frozen by `holidays`')")
}
