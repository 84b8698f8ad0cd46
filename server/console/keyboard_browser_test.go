package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ordain.dev/ordain/internal/testing/tool"
)

// An operator without a mouse: lists the keys, goes to the resources by two letters, moves down the list, opens a
// resource, searches, and leaves the search.
func TestKeyboardJourney(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := rich(t)
	b := browse(t, h)
	env := envURL(r.Production.ID)
	b.open(env)
	b.do(chromedp.KeyEvent("?"))
	b.until(`document.querySelector('dialog[open] #keys')?.innerText.includes('Next row of a list')`)
	b.accessible("the list of keys")
	b.do(chromedp.KeyEvent("j")) // belongs to the page below, which must not move
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('dialog')`)

	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("r"))
	b.until(`location.pathname.endsWith('/resources') && document.readyState === 'complete'`)
	b.do(chromedp.KeyEvent("j"))
	b.until(`document.activeElement.matches('#resourcelist tbody tr:nth-child(1) a')`)
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	b.until(`document.querySelector('#resourcelist tbody tr:nth-child(2) input').checked`)
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("k"))
	b.until(`document.activeElement.matches('#resourcelist tbody tr:nth-child(2) a')`)
	name := eval[string](b, `document.activeElement.textContent`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname.endsWith('/resource') && document.readyState === 'complete'`)
	if got := eval[string](b, `document.querySelector('h1 .mono').textContent`); got != name {
		t.Errorf("Enter opened %s, not %s", got, name)
	}

	b.do(chromedp.KeyEvent("/"))
	b.until(`document.activeElement.id === 'search'`)
	b.do(chromedp.KeyEvent("gjx")) // the / before it is sent as text too, which no real keyboard does
	b.until(`document.getElementById('search').value.endsWith('gjx')`)
	if eval[bool](b, `!!document.querySelector('dialog')`) {
		t.Error("a key in a field did something else than write")
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.activeElement === document.body`)

	b.open(env + "/keyboard")
	b.accessible("the page of keys")
	b.open("/search?q=s&env=" + r.Production.ID.String())
	b.accessible("the results of a search")
	b.do(chromedp.KeyEvent("j"))
	b.until(`document.activeElement.closest('ul.hits li')`)
}

// The commit of a run can be copied with one click.
func TestACommitIsCopied(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := rich(t)
	b := browse(t, h)
	b.open(runURL(r.Production.ID, r.Good))
	b.until(`document.documentElement.classList.contains('copies')`)
	full := eval[string](b, `document.querySelector('#run-head .copy').dataset.copy`)
	eval[bool](b, `navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }, true`)
	b.do(chromedp.Click(`#run-head .copy`))
	b.until(`window.copied`)
	if got := eval[string](b, `window.copied`); got != full || len(got) < 7 {
		t.Errorf("copied %q, want %q", got, full)
	}
}
