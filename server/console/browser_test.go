package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/parallel"
	"ordain.dev/ordain/internal/testing/tool"
)

// chromium returns the path of the browser in which the journeys run.
func chromium(t *testing.T) string {
	t.Helper()
	tool.Heavy(t, "works in a browser")
	return tool.Need(t, os.Getenv("ORDAIN_TEST_BROWSER"),
		"chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
}

// tab is a page in a real browser, on a console of its own.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
}

// browse opens a page in the browser of this process, which has cookies, a cache and a history of its own, on a console
// of its own.
func browse(t *testing.T, h http.Handler) *tab {
	t.Helper()
	all, err := browser(chromium(t))
	if err != nil {
		t.Fatal("starting a browser: ", err)
	}
	server := httptest.NewServer(h)
	ctx, closeTab := chromedp.NewContext(all, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	b := &tab{t: t, ctx: ctx, base: server.URL}
	t.Cleanup(func() {
		if t.Failed() {
			b.keep()
		}
		cancel()
		closeTab()
		server.CloseClientConnections()
		server.Close()
	})
	b.do(chromedp.EmulateViewport(1280, 900))
	// Each page takes itself for the one in front, so that tests beside each other can type.
	if _, err := chromedp.Call(
		b.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true},
	); err != nil {
		t.Fatal(err)
	}
	return b
}

// theBrowser is the browser in which all tests open their pages.
var theBrowser struct {
	once sync.Once
	ctx  context.Context
	err  error
	stop func()
}

// browser returns the browser of this process, and starts it for the first test that needs it.
func browser(path string) (context.Context, error) {
	c := &theBrowser
	c.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
			chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1280, 900),
			// A mark that turns would have each tab painted sixty times a second. No process is kept ready for a
			// page of another site, for there is none; nor are pages for what is typed into the address bar.
			chromedp.Flag("force-prefers-reduced-motion", true),
			chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess,"+
				"WebUIOmniboxPopup,WebUIOmniboxAimPopup"))
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox)
		}
		allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, closeBrowser := chromedp.NewContext(allocator)
		c.ctx, c.stop = ctx, func() { closeBrowser(); stopAllocator() }
		c.err = chromedp.Do(ctx)
	})
	return c.ctx, c.err
}

// TestMain runs more tests beside each other than there are processors, and ends the browser with the tests.
func TestMain(m *testing.M) {
	// A test waits for its browser, and the browser for its test.
	code := parallel.Wide(m, 2).Run()
	if theBrowser.stop != nil {
		theBrowser.stop()
	}
	os.Exit(code)
}

// keep saves what the page looks like when a test failed.
func (b *tab) keep() {
	dir := b.t.ArtifactDir()
	if picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(90)); err == nil {
		if err := os.WriteFile(filepath.Join(dir, "page.jpg"), picture, 0o644); err != nil {
			b.t.Log(err)
		}
	}
	if html, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.documentElement.outerHTML`)); err == nil {
		if err := os.WriteFile(filepath.Join(dir, "page.html"), []byte(html), 0o644); err != nil {
			b.t.Log(err)
		}
	}
	b.t.Logf("the page was saved in %s (kept with go test -artifacts)", dir)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page and waits until it is there: the event that Navigate waits for may be that of the page before.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
	b.until(`document.readyState === 'complete'`)
}

// back presses the back button of the browser, and does not wait for the page that it leads to.
func (b *tab) back() {
	b.t.Helper()
	history, err := chromedp.Call(b.ctx, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	if history.CurrentIndex == 0 {
		b.t.Fatal("there is no page to go back to")
	}
	if _, err := chromedp.Call(b.ctx, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{
		EntryID: history.Entries[history.CurrentIndex-1].ID,
	}); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression. The expression must not lead to another page: its value may be lost with the
// page that it belongs to.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", strings.SplitN(expression, "\n", 2)[0], err)
	}
	return v
}

// until waits for an expression to become true, across navigations.
func (b *tab) until(expression string) {
	b.t.Helper()
	deadline := time.After(15 * time.Second)
	retry := time.NewTicker(25 * time.Millisecond)
	defer retry.Stop()
	var last error
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		last = err
		select {
		case <-retry.C:
		case <-deadline:
			at, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href"))
			b.t.Fatalf("never came true: %s (%v), at %s", expression, last, at)
		}
	}
}

// look sets the size of the window and the colours that the reader prefers.
func (b *tab) look(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		},
	}); err != nil {
		b.t.Fatal(err)
	}
}

var axe = func() string {
	source, err := os.ReadFile("testdata/axe-core/axe.min.js")
	if err != nil {
		panic(err)
	}
	return string(source)
}()

// accessible runs axe on the page that is open.
func (b *tab) accessible(what string) {
	b.t.Helper()
	b.keepsTo(what, "")
}

// keepsTo is accessible by some of axe's rules, which options chooses; "" chooses all.
func (b *tab) keepsTo(what, options string) {
	b.t.Helper()
	if !eval[bool](b, `'axe' in window`) {
		eval[bool](b, axe+";true")
	}
	// Only what is reported below is worked out: no list of what is right, and no selectors.
	text := eval[string](b, `axe.run(document, {reporter: 'no-passes', selectors: false, `+options+`}).then(r =>
		JSON.stringify(r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n =>
			n.html.slice(0, 200) + ' ' + n.any.concat(n.all).map(c => c.message).join('; '))}))))`)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(text), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: %s: %s\n%s", what, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// screen is a way in which people look at a page, and what axe is asked about there.
type screen struct {
	name          string
	width, height int64
	scheme        string
	rules         string
}

// screens are the ways in which people look at a page. All rules are checked on the first; the others differ from it in
// their colours, or in all but these.
var screens = []screen{
	{"light", 1280, 900, "light", ""},
	{"dark", 1280, 900, "dark", "runOnly: ['color-contrast']"},
	{"phone", 390, 844, "light", "rules: {'color-contrast': {enabled: false}}"},
}

// axe finds no fault in any page; each fits its screen without scrolling sideways and has one first heading: light and
// dark, wide and narrow. Each fits at twice the size too, in a window of 320 px. With ORDAIN_CONSOLE_SHOTS=dir, the
// test leaves a picture of each in that folder.
func TestPagesAreAccessibleOnEveryScreen(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := rich(t)
	for n := range 5 { // metrics of some minutes
		at := r.Now().Add(time.Duration(n-40) * time.Minute)
		_, err := r.Store.RecordMetrics(t.Context(), at, -100*365*24*time.Hour)
		must(t, err)
	}
	t.Run("light", func(t *testing.T) {
		b := browse(t, h)
		for name, path := range paths(r) {
			if !tool.Among(name) {
				continue
			}
			b.look(1280, 900, "light")
			b.open(path)
			b.accessibleOn(name, screens[:1])
			b.look(320, 640, "light")
			b.fits(name + " at twice the size")
			if name == "agents" || strings.HasPrefix(name, "graph") { // pictures, whose colours are their own
				b.accessibleOn(name, screens[1:2])
				b.readsItsNodes(name + " dark")
			}
		}
	})
	t.Run("dark and narrow", func(t *testing.T) {
		tool.Long(t, "asks axe about every page again")
		b := browse(t, h)
		for name, path := range paths(r) {
			b.look(1280, 900, "dark")
			b.open(path)
			b.accessibleOn(name, screens[1:])
		}
	})
}

// accessibleOn checks the page that is open on these screens. It leaves pictures
// of the page in the folder ORDAIN_CONSOLE_SHOTS, if that is set.
func (b *tab) accessibleOn(what string, screens []screen) {
	b.t.Helper()
	if n := eval[int](b, `document.querySelectorAll('h1').length`); n != 1 {
		b.t.Errorf("%s has %d first headings", what, n)
	}
	for _, s := range screens {
		name := what + " " + s.name
		b.look(s.width, s.height, s.scheme)
		b.keepsTo(name, s.rules)
		b.fits(name)
		if shots := os.Getenv("ORDAIN_CONSOLE_SHOTS"); shots != "" {
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			must(b.t, err)
			file := strings.NewReplacer(" ", "-", "#", "-").Replace(name) + ".png"
			must(b.t, os.WriteFile(filepath.Join(shots, file), picture, 0o644))
		}
	}
}

// readsItsNodes checks the contrast of the texts in the boxes of a graph, of which axe says nothing: it knows no fills
// of shapes.
func (b *tab) readsItsNodes(what string) {
	b.t.Helper()
	faint := eval[[]string](b, `(() => {
		const light = text => {
			const [r, g, b] = text.match(/[\d.]+/g).map(x => x / 255).map(x =>
				x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
			return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
		};
		return [...document.querySelectorAll('.resource-graph a.box')].flatMap(box => {
			const ground = light(getComputedStyle(box.querySelector('.node > rect')).fill);
			return [...box.querySelectorAll('text')].filter(text => {
				const ink = light(getComputedStyle(text).fill);
				return Math.max(ink, ground) / Math.min(ink, ground) < 4.5;
			}).map(text => text.textContent);
		});
	})()`)
	if len(faint) > 0 {
		b.t.Errorf("%s: these texts are hard to read: %q", what, faint)
	}
}

// fits checks that the page does not scroll sideways.
func (b *tab) fits(what string) {
	b.t.Helper()
	over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	if over > 0 {
		b.t.Errorf("%s is %d px wider than the screen: %s", what, over, eval[string](b,
			`(() => { // goes down to the element without which the page fits
				const root = document.documentElement, way = [];
				const wide = () => root.scrollWidth > root.clientWidth;
				for (let at = document.body; at;) {
					const guilty = [...at.children].find(e => {
						const before = e.style.display;
						e.style.display = 'none';
						const fits = !wide();
						e.style.display = before;
						return fits;
					});
					if (guilty) way.push(guilty.outerHTML.slice(0, 120));
					at = guilty;
				}
				return way.slice(-3);
			})().join('\n')`))
	}
}
