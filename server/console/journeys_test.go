package console

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/servertest"
)

// liveRich returns a server with a history, and a console of it whose pages follow events quickly.
func liveRich(t *testing.T) (*servertest.Rich, http.Handler) {
	return rich(t, func(c *Config) { c.Pace = 20 * time.Millisecond })
}

// Someone watches a run. Output arrives and steps change, but the page does not move under them: the fold that they
// opened stays open, the one that they closed stays closed, the focus stays, a log that was at its end follows, and a
// log that was scrolled up does not.
func TestJourneyWatchingARun(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	ctx, stage := t.Context(), installing(t, r)
	print := func(text string) {
		must(t, r.Store.AppendStage(ctx, stage, text, ""))
		moved(r, bus.Compile)
	}
	print(strings.Repeat("a line of the installation\n", 200))
	b := browse(t, h)
	b.look(1280, 900, "light")
	b.open("/e/" + r.Production.ID.String() + "/runs/" + r.Running.String())
	b.until(`document.getElementById('live').textContent === 'Live'`)
	b.do(chromedp.Click(chromedp.CSS("#step-fetched summary")))
	b.until(`document.querySelector('#step-fetched details').open`)
	const log = `document.querySelector('#step-installed .log')`
	eval[bool](b, `(log => { log.scrollTop = log.scrollHeight; log.focus(); return true })(`+log+`)`)
	print("the newest line\n")
	b.until(log + `.textContent.includes('the newest line')`)
	if !eval[bool](b, `(log => log.scrollTop + log.clientHeight > log.scrollHeight - 24)(`+log+`)`) {
		t.Error("a log at its end does not follow")
	}
	if !eval[bool](b, `document.activeElement === `+log) {
		t.Error("the focus was stolen")
	}
	eval[bool](b, `(`+log+`.scrollTop = 40, true)`)
	print("one more line\n")
	b.until(log + `.textContent.includes('one more line')`)
	if top := eval[int](b, log+`.scrollTop`); top != 40 {
		t.Errorf("a log that was scrolled up jumped to %d", top)
	}
	if !eval[bool](b, `document.querySelector('#step-fetched details').open`) {
		t.Error("the fold that was opened is closed")
	}
	b.do(chromedp.Click(chromedp.CSS("#step-installed summary")))
	b.until(`!document.querySelector('#step-installed details').open`)
	must(t, r.Store.FinishStage(ctx, stage, "uv pip install", 1, r.Now()))
	must(t, r.Store.FinishCompile(ctx, r.Running, intent.CompileEnd{At: r.Now()}))
	moved(r, bus.Compile)
	b.until(`document.querySelector('#run-head .state').textContent.trim() === 'failed'`)
	b.until(`document.querySelector('#step-installed').classList.contains('s-failed')`)
	b.until(`document.querySelector('#step-compiled .step-state').textContent === 'not reached'`)
	if eval[bool](b, `document.querySelector('#step-installed details').open`) {
		t.Error("the fold that was closed is open")
	}
	b.accessible("a run that was watched")
}

// Someone uses only the keyboard: skips to the content, searches for a version, switches the environment, and pauses
// an agent.
func TestJourneyByKeyboard(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
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
	_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Text: "/",
	})
	must(t, err)
	b.until(`document.activeElement.id === 'search' && document.activeElement.value === ''`)
	b.do(chromedp.KeyEvent("v7"), chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname.endsWith('/versions/7') && document.readyState === 'complete'`)
	eval[bool](b, `(document.querySelector('.switcher summary').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('.switcher').open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('.switcher').open && document.activeElement.tagName === 'SUMMARY'`)
	b.do(chromedp.KeyEvent(kb.Enter))
	for range 3 { // production, sandbox, staging
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	if got := eval[string](b, `document.activeElement.textContent`); !strings.Contains(got, "staging") {
		t.Errorf("the third environment is %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.title.startsWith('staging')`)
	b.open(env + "/agents")
	eval[bool](b, `([...document.querySelectorAll('main button')]
		.find(x => x.textContent === 'Pause web03').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('.banner.done')?.textContent === 'The agent is paused.'`)
	agents, err := r.Store.Agents(t.Context(), r.Production.ID, intent.ListQuery{
		Filters: map[string][]string{"name": {"web03"}},
	})
	must(t, err)
	if !agents.Items[0].Paused {
		t.Error("the agent is not paused")
	}
}

// Someone makes an environment, sees it empty, and sees its first compile appear by itself.
func TestJourneyANewEnvironment(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	s := servertest.New(t, servertest.Present)
	ctx := t.Context()
	b := browse(t, newConsole(t, s))
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
	all, err := s.Store.Environments(ctx)
	must(t, err)
	env := all[0].ID
	if names, err := s.Control.SecretNames(ctx, env); err != nil || !slices.Equal(names, []string{"webhook"}) {
		t.Errorf("secrets: %v %v", names, err)
	}
	run, err := s.Store.StartCompile(ctx, env, s.Now())
	must(t, err)
	must(t, s.Store.SetCompileRevision(ctx, run.ID, intent.Revision{
		Commit: "0123456789abcdef0123456789abcdef01234567", Branch: "main", Author: "Ida", Subject: "First <commit>",
	}))
	s.Bus.Publish(bus.Event{Environment: env, Topic: bus.Compile})
	b.until(`document.querySelector('#latest')?.textContent.includes('First <commit>')`)
	b.until(`document.querySelector('.sentence').textContent === 'The first compile is running.'`)
	b.accessible("an environment with its first run")
}

// Without script everything can be read and done.
func TestJourneyWithoutScript(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	r.Start(t)
	b := browse(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".js") {
			http.NotFound(w, r) // as for a filter on the way, or a browser with scripts switched off
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
	if told := r.Told(); !slices.Contains(told, "deploy full=true [] ["+r.FailedFile.String()+"]") {
		t.Errorf("%v", told)
	}
}

// TestPicture takes a picture of a console that runs elsewhere, for the README:
//
//	export ORDAIN_PICTURE_URL=http://127.0.0.1:8888/e/… ORDAIN_PICTURE=docs/console.png
//	go test -run TestPicture ./server/console
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
	b.look(1600, 1000, scheme)
	// All of a run is in the picture, which is as wide as the README shows it.
	b.do(chromedp.EmulateViewport(1600, 1000, chromedp.EmulateScale(0.8)),
		chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("main h1")))
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

// Someone waits for a commit to be promoted: the page shows which gates hold it; a gate opens by itself; they approve
// exactly this commit, and see it promoted.
func TestJourneyAPromotion(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	ctx := t.Context()
	b := browse(t, h)
	b.look(1280, 900, "light")
	commit, env := r.Waiting.Commit, "/e/"+r.Production.ID.String()
	gate := func(text string) string {
		return `[...document.querySelectorAll('#promotion li')]
			.find(x => x.textContent.includes('` + text + `'))?.textContent`
	}
	b.open(env)
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="` + env + `/git"]`)))
	b.until(`document.querySelector('#git-promotion')?.textContent === 'Promotion'`)
	b.until(`document.getElementById('live').textContent === 'Live'`)
	b.until(gate("approval of this commit") + `.includes('holds')`)
	b.until(gate("soak until") + `.includes('holds')`)
	b.do(chromedp.SendKeys(chromedp.CSS("#promote-by"), "ida"))
	r.SetClock(r.Now().Add(10 * time.Minute))
	judge(t, r)
	moved(r, bus.Promotion)
	b.until(gate("soak") + `.includes('open')`)
	if got := eval[string](b, `document.querySelector('#promote-by').value`); got != "ida" {
		t.Errorf("what was typed became %q", got)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#promote-reason"), "it looks well"),
		chromedp.Click(chromedp.CSS(`button[formaction$="/promote/approve"]`)))
	b.until(`document.querySelector('.banner.done') !== null && document.readyState === 'complete'`)
	following, err := r.Control.Following(ctx, r.Production.ID)
	must(t, err)
	if a := following.Waiting().Approved; a == nil || a.By != "ida" || a.Reason != "it looks well" {
		t.Errorf("approved: %+v", a)
	}
	if eval[bool](b, `document.querySelector('button[formaction$="/promote/approve"]') !== null`) {
		t.Error("it can be approved again")
	}
	b.accessible("a promotion that was approved")
	b.until(`document.getElementById('live').textContent === 'Live'`)
	makeCompliant(t, r)
	judge(t, r)
	moved(r, bus.Promotion)
	b.until(`document.querySelector('#promotion').textContent.includes('Nothing waits')`)
	b.open(env + "/git")
	b.until(`[...document.querySelectorAll('tr')].some(x => x.textContent.includes('` + commit[:7] + `') &&
		x.textContent.includes('promoted, compiling'))`)
	b.accessible("a commit that was promoted")
}

// makeCompliant records that all resources of staging are as intended.
func makeCompliant(t *testing.T, r *servertest.Rich) {
	t.Helper()
	states, err := r.Store.States(t.Context(), r.Staging.ID)
	must(t, err)
	at := r.Now()
	var done []intent.FinishedAction
	for _, s := range states {
		s.Compliance = intent.Compliant
		done = append(done, intent.FinishedAction{State: s, Action: intent.Action{
			ID: uuid.New(), Environment: r.Staging.ID, Kind: intent.ActionDeploy, Resource: s.ID,
			Version: s.LastDeployed, Started: at, Finished: &at, Status: intent.StatusDeployed,
		}})
	}
	must(t, r.Store.FinishActions(t.Context(), r.Staging.ID, done))
}
