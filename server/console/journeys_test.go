package console

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ordain.dev/ordain/api/apitest"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

func liveRich(t *testing.T) (*apitest.Rich, http.Handler) {
	r := apitest.NewRich(time.Now())
	return r, newConsole(t, r, func(c *Config) { c.Now = time.Now; c.Pace = 20 * time.Millisecond })
}

// Someone watches a run. Output arrives and steps change, but nothing that
// they hold moves: the fold that they opened stays open, the one they closed
// stays closed, the focus stays, a log at its end follows, a log that was
// scrolled up does not.
func TestJourneyWatchingARun(t *testing.T) {
	r, h := liveRich(t)
	b := browse(t, h)
	b.look(1280, 900, "light")
	moved := bus.Event{Environment: r.Production.ID, Topic: bus.Compile, ID: r.Running.String()}
	r.Do(func() { runIn(r).Stages[3].Output = strings.Repeat("a line of the installation\n", 200) })
	b.open("/e/" + r.Production.ID.String() + "/runs/" + r.Running.String())
	b.until(`document.getElementById('live').textContent === 'Live'`)
	b.do(chromedp.Click(chromedp.CSS("#step-fetched summary")))
	b.until(`document.querySelector('#step-fetched details').open`)
	eval[bool](
		b,
		`(log => { log.scrollTop = log.scrollHeight; log.focus(); return true })(document.querySelector('#step-installed .log'))`,
	)
	r.Do(func() { runIn(r).Stages[3].Output += "the newest line\n" }, moved)
	b.until(`document.querySelector('#step-installed .log').textContent.includes('the newest line')`)
	if !eval[bool](
		b,
		`(log => log.scrollTop + log.clientHeight > log.scrollHeight - 24)(document.querySelector('#step-installed .log'))`,
	) {
		t.Error("a log at its end does not follow")
	}
	if !eval[bool](b, `document.activeElement === document.querySelector('#step-installed .log')`) {
		t.Error("the focus was stolen")
	}
	eval[bool](b, `(document.querySelector('#step-installed .log').scrollTop = 40, true)`)
	r.Do(func() { runIn(r).Stages[3].Output += "one more line\n" }, moved)
	b.until(`document.querySelector('#step-installed .log').textContent.includes('one more line')`)
	if top := eval[int](b, `document.querySelector('#step-installed .log').scrollTop`); top != 40 {
		t.Errorf("a log that was scrolled up jumped to %d", top)
	}
	if !eval[bool](b, `document.querySelector('#step-fetched details').open`) {
		t.Error("the fold that was opened is closed")
	}
	b.do(chromedp.Click(chromedp.CSS("#step-installed summary")))
	b.until(`!document.querySelector('#step-installed details').open`)
	now := time.Now()
	r.Do(func() {
		run := runIn(r)
		run.Stages[3].Completed, run.Stages[3].ReturnCode = &now, new(1)
		run.Completed, run.Success = &now, new(false)
	}, moved)
	b.until(`document.querySelector('#run-head .state').textContent.trim() === 'failed'`)
	b.until(`document.querySelector('#step-installed').classList.contains('s-failed')`)
	b.until(`document.querySelector('#step-compiled .step-state').textContent === 'not reached'`)
	if eval[bool](b, `document.querySelector('#step-installed details').open`) {
		t.Error("the fold that was closed is open")
	}
	b.accessible("a run that was watched")
}

// Someone uses only the keyboard: skips to the content, searches for a
// version, switches the environment, pauses an agent.
func TestJourneyByKeyboard(t *testing.T) {
	r, h := liveRich(t)
	b := browse(t, h)
	b.look(1280, 900, "dark")
	env := "/e/" + r.Production.ID.String()
	b.open(env)
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.textContent`); got != "Skip to the content" {
		t.Errorf("the first stop is %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.id === 'content'`)
	// As one event, so that the page may keep the character from being typed.
	if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Text: "/"}); err != nil {
		t.Fatal(err)
	}
	b.until(`document.activeElement.id === 'search' && document.activeElement.value === ''`)
	b.do(chromedp.KeyEvent("v7"), chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname.endsWith('/versions/7') && document.readyState === 'complete'`)
	eval[bool](b, `(document.querySelector('.switcher summary').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('.switcher').open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('.switcher').open && document.activeElement.tagName === 'SUMMARY'`)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.textContent`); !strings.Contains(got, "staging") {
		t.Errorf("the second environment is %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.title.startsWith('staging')`)
	b.open(env + "/agents")
	eval[bool](
		b,
		`([...document.querySelectorAll('main button')].find(x => x.textContent === 'Pause web03').focus(), true)`,
	)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('.banner.done')?.textContent === 'The agent is paused.'`)
	if verbs := r.Verbs(); len(verbs) != 1 || verbs[0] != "pause web03" {
		t.Errorf("%v", verbs)
	}
}

// Someone makes an environment, sees it empty, and sees its first compile
// appear by itself.
func TestJourneyANewEnvironment(t *testing.T) {
	c := apitest.New()
	b := browse(t, newConsole(t, c, func(cfg *Config) { cfg.Now = time.Now }))
	b.look(390, 844, "light")
	b.open("/")
	b.accessible("the console of a new server")
	b.do(
		chromedp.SendKeys(chromedp.CSS("#project"), "shop"), chromedp.SendKeys(chromedp.CSS("#name"), "live"),
		chromedp.SendKeys(chromedp.CSS("#repository"), "https://git.example.com/shop.git"),
		chromedp.SendKeys(chromedp.CSS("#webhook-secret"), "quite secret"),
		chromedp.Click(chromedp.CSS("#new button.primary")),
	)
	b.until(`document.querySelector('.banner.done')?.textContent === 'The environment was created.'`)
	b.until(`document.querySelector('.sentence').textContent === 'A compile is waiting to start.'`)
	b.until(`document.getElementById('live').textContent === 'Live'`)
	env := c.Envs[0]
	if env.Secrets["webhook"] != "quite secret" {
		t.Errorf("secrets: %v", env.Secrets)
	}
	now := time.Now()
	c.Do(func() {
		env.Runs[0].Started = &now
		env.Runs[0].Revision = &intent.Revision{
			Commit:  "0123456789abcdef0123456789abcdef01234567",
			Branch:  "main",
			Author:  "Ida",
			Subject: "First <commit>",
		}
	}, bus.Event{Environment: env.ID, Topic: bus.Compile})
	b.until(`document.querySelector('#latest')?.textContent.includes('First <commit>')`)
	b.until(`document.querySelector('.sentence').textContent === 'The first compile is running.'`)
	b.accessible("an environment with its first run")
}

// Without script everything can be read and done.
func TestJourneyWithoutScript(t *testing.T) {
	r, h := liveRich(t)
	b := browse(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".js") {
			http.NotFound(w, r) // as a filter on the way, or a script that is switched off
			return
		}
		h.ServeHTTP(w, r)
	}))
	env := "/e/" + r.Production.ID.String()
	b.open(env + "/resources")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-value"), "site-023"), chromedp.Click(chromedp.CSS(".filter button")))
	b.until(`location.search.includes('value=site-023') && document.querySelectorAll('tbody tr').length === 1`)
	b.do(chromedp.Click(chromedp.CSS(`tbody a`)))
	b.until(`document.getElementById('attempts')`)
	b.do(chromedp.Click(chromedp.CSS("#resource-head button.primary")))
	b.until(`document.querySelector('.banner.done')`)
	if text := eval[string](b, `document.getElementById('live').textContent`); text != "" {
		t.Errorf("the script ran: %q", text)
	}
	if verbs := r.Verbs(); len(verbs) != 1 || verbs[0] != "deploy "+r.FailedFile.String() {
		t.Errorf("%v", verbs)
	}
}

// At twice the size, and in a window of 320 px, no page scrolls sideways.
func TestJourneyLargeText(t *testing.T) {
	r, h := liveRich(t)
	b := browse(t, h)
	b.look(320, 640, "light")
	for name, path := range paths(r) {
		b.open(path)
		if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf(
				"%s is %d px too wide: %s",
				name,
				over,
				eval[string](
					b,
					`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join('\n')`,
				),
			)
		}
	}
}

// TestPicture photographs a console that runs elsewhere, for the README:
//
//	ORDAIN_PICTURE_URL=http://127.0.0.1:8888/e/… ORDAIN_PICTURE=docs/console.png go test -run TestPicture ./server/console
func TestPicture(t *testing.T) {
	address, target := os.Getenv("ORDAIN_PICTURE_URL"), os.Getenv("ORDAIN_PICTURE")
	if address == "" || target == "" {
		t.Skip("set ORDAIN_PICTURE_URL to a page of a running console and ORDAIN_PICTURE to the file to write")
	}
	b := browse(t, http.NotFoundHandler())
	scheme := "light"
	if os.Getenv("ORDAIN_PICTURE_SCHEME") == "dark" {
		scheme = "dark"
	}
	b.look(1280, 800, scheme)
	b.do(chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("main h1")))
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Someone waits for a commit to be promoted: the page shows which gates hold,
// a gate opens by itself, they approve exactly this commit, and see it promoted.
func TestJourneyAPromotion(t *testing.T) {
	r, h := liveRich(t)
	b := browse(t, h)
	b.look(1280, 900, "light")
	waiting := func() *intent.Promotion { return r.Production.Follow.Waiting() }
	commit, moved := waiting().Commit, bus.Event{Environment: r.Production.ID, Topic: bus.Promotion}
	env := "/e/" + r.Production.ID.String()
	gate := func(text string) string {
		return `[...document.querySelectorAll('#promotion li')].find(x => x.textContent.includes('` + text + `'))?.textContent`
	}
	b.open(env)
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="` + env + `/git"]`)))
	b.until(`document.querySelector('#git-promotion')?.textContent === 'Promotion'`)
	b.until(`document.getElementById('live').textContent === 'Live'`)
	b.until(gate("approval of this commit") + `.includes('holds')`)
	b.until(gate("soak until") + `.includes('holds')`)
	b.do(chromedp.SendKeys(chromedp.CSS("#promote-by"), "ida"))
	r.Do(func() {
		for i := range waiting().Gates {
			if g := &waiting().Gates[i]; g.Gate != intent.GateApproval {
				g.Open, g.Text = true, "it is "+string(g.Gate)
			}
		}
	}, moved)
	b.until(gate("it is soak") + `.includes('open')`)
	if got := eval[string](b, `document.querySelector('#promote-by').value`); got != "ida" {
		t.Errorf("what was typed became %q", got)
	}
	b.do(
		chromedp.SendKeys(chromedp.CSS("#promote-reason"), "it looks well"),
		chromedp.Click(chromedp.CSS(`button[formaction$="/promote/approve"]`)),
	)
	b.until(`document.querySelector('.banner.done') !== null && document.readyState === 'complete'`)
	if verbs := r.Verbs(); len(verbs) != 1 || verbs[0] != "approve promotion "+commit {
		t.Errorf("%q", verbs)
	}
	if eval[bool](b, `document.querySelector('button[formaction$="/promote/approve"]') !== null`) {
		t.Error("it can be approved again")
	}
	b.accessible("a promotion that was approved")
	b.until(`document.getElementById('live').textContent === 'Live'`)
	r.Do(func() {
		now, yes, p := time.Now(), true, waiting()
		p.State, p.Ended, p.Compile, p.Made, p.Success = intent.PromotionPromoted, &now, &r.Good, 8, &yes
		r.Production.Follow.Idle = "production has what staging has"
	}, moved)
	b.until(`document.querySelector('#promotion').textContent.includes('production has what staging has')`)
	b.open(env + "/git")
	b.until(
		`[...document.querySelectorAll('tr')].some(x => x.textContent.includes('` + commit[:7] + `') && x.textContent.includes('promoted') && x.querySelector('a[href$="/versions/8"]'))`,
	)
	b.accessible("a commit that was promoted")
}
