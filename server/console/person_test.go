package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// maxClicks is how many clicks a task may take.
const maxClicks = 3

// person is somebody at the console who knows nothing of its addresses and ids: they click on what they can read, type
// into fields that have a label, and read what is on the screen.
type person struct {
	*tab
	clicks int
}

// task lets a person do one task, from a page where people begin. It takes at most three clicks.
func (b *tab) task(t *testing.T, name, begin string, do func(*person)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		at := *b // in the same tab of the browser
		at.t = t
		defer func() {
			if t.Failed() {
				at.keep()
			}
		}()
		p := &person{tab: &at}
		p.open(begin)
		do(p)
		if p.clicks > maxClicks {
			t.Errorf("it took %d clicks, not %d at most", p.clicks, maxClicks)
		}
	})
}

// eyes are functions for expressions. seen returns the text of an element that can be seen: not what is folded away,
// has no size, or is there for screen readers only. What is typed into fields is a part of it.
const eyes = `
const tidy = text => text.replace(/\s+/g, ' ').trim();
const shown = e => {
	const style = getComputedStyle(e);
	if (style.display === 'contents') return true;
	const box = e.getBoundingClientRect();
	return box.width > 1 && box.height > 1 &&
		e.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true});
};
const text = e => {
	if (!shown(e)) return '';
	if (e instanceof HTMLSelectElement) return ' ' + (e.selectedOptions[0]?.text ?? '') + ' ';
	if (e instanceof HTMLInputElement || e instanceof HTMLTextAreaElement) {
		return ['hidden', 'password', 'checkbox', 'radio'].includes(e.type) ? ' ' : ' ' + e.value + ' ';
	}
	let out = '';
	for (const part of e.childNodes) {
		if (part.nodeType === Node.TEXT_NODE) out += part.data;
		if (part.nodeType === Node.ELEMENT_NODE) out += text(part);
	}
	return getComputedStyle(e).display.startsWith('inline') ? out : ' ' + out + ' ';
};
const seen = e => tidy(text(e));
// find returns the first element that matches a selector and has a text, in what the page is about rather than in its
// menus, and in a row, paragraph or section that has all the words beside it.
const find = (selector, matches, beside) => {
	beside ??= [];
	const all = [...document.querySelectorAll('main ' + selector), ...document.querySelectorAll(selector)];
	return all.filter(e => matches(seen(e))).find(e => {
		if (beside.length === 0) return true;
		for (let at = e.parentElement; at && at !== document.body; at = at.parentElement) {
			if (!at.matches('li, tr, p, form, section, details, figure, div')) continue;
			const words = seen(at);
			if (beside.every(w => words.includes(w))) return true;
			if (at.matches('li, tr, form')) return false;
		}
		return false;
	});
};
`

// quoted returns text, or a list of texts, as an expression.
func quoted[T string | []string](v T) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // not of strings
	}
	return string(text)
}

// look evaluates an expression that uses eyes, until it gives something or time is up.
func look[T any](p *person, expression string) *T {
	p.t.Helper()
	var found *T
	poll(func() bool {
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[*T](`(() => {`+eyes+`return `+expression+`})()`))
		found = v
		return err == nil && v != nil
	})
	return found
}

// poll asks until the answer is yes, and reports whether it ever was.
func poll(answer func() bool) bool {
	deadline := time.After(15 * time.Second)
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		if answer() {
			return true
		}
		select {
		case <-retry.C:
		case <-deadline:
			return false
		}
	}
}

// screen returns all that can be read.
func (p *person) screen() string {
	p.t.Helper()
	text := look[string](p, `document.body && seen(document.body)`)
	if text == nil {
		p.t.Fatal("there is nothing on the screen")
	}
	return *text
}

// reads waits until each of these texts is on the screen.
func (p *person) reads(texts ...string) {
	p.t.Helper()
	if look[bool](p, `document.body && `+quoted(texts)+`.every(t => seen(document.body).includes(t)) || null`) != nil {
		return
	}
	screen := p.screen()
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			p.t.Errorf("%q is not on the screen", text)
		}
	}
	p.t.Fatalf("the screen shows: %s", screen)
}

// spot is where something is, and whether a click on it leads to another page.
type spot struct {
	X, Y    float64
	Leads   bool
	Covered string // what lies over it
}

// click clicks on a link, a button or a fold with this text, where the texts beside it are in the same row or section.
// It returns when the page is there to which the click leads. What moves away under the pointer is clicked on again.
func (p *person) click(text string, beside ...string) {
	p.t.Helper()
	p.clicks++
	if !poll(func() bool { return p.clickOnce(text, beside) }) {
		p.t.Fatalf("%q moves all the time", text)
	}
}

// clickOnce is click, but reports false when the pointer hit something else, which the page does not hear of then.
func (p *person) clickOnce(text string, beside []string) bool {
	p.t.Helper()
	at := look[spot](p, `(() => {
		if (document.readyState !== 'complete') return null;
		const e = find(':is(a[href], button, summary)', t => t === `+quoted(text)+`, `+quoted(beside)+`);
		if (!e) return null;
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		const box = e.getClientRects()[0], x = box.x + box.width / 2, y = box.y + box.height / 2;
		const top = document.elementFromPoint(x, y);
		window.hit = undefined;
		document.addEventListener('click', click => {
			// A list that is sorted anew may have put something else into the same element.
			window.hit = e.contains(click.target) && seen(e) === `+quoted(text)+`;
			if (!window.hit) { click.preventDefault(); click.stopPropagation(); }
		}, {capture: true, once: true});
		const sends = e.matches('button:not([type=button])') && e.form !== null;
		return {x, y, leads: sends || e.matches('a:not([href^="#"])'),
			covered: e.contains(top) ? '' : String(top?.outerHTML).slice(0, 200)};
	})()`)
	switch {
	case at == nil:
		p.t.Fatalf("there is nothing to click on with the text %q beside %q; the screen shows: %s",
			text, beside, p.screen())
	case at.Covered != "":
		p.t.Fatalf("%q is covered by %s", text, at.Covered)
	}
	eval[bool](p.tab, `window.left = true`)
	p.do(chromedp.MouseClickXY(at.X, at.Y))
	if at.Leads {
		p.until(`!window.left && document.readyState === 'complete' || window.hit === false`)
	} else {
		p.until(`window.hit !== undefined`)
	}
	return eval[bool](p.tab, `window.hit !== false`)
}

// enters types into the field with a label, where the texts beside it are in the same form, in place of what it holds.
func (p *person) enters(label, text string, beside ...string) {
	p.t.Helper()
	if look[bool](p, `(() => {
		const named = find('label', t => t.startsWith(`+quoted(label)+`), `+quoted(beside)+`)?.control ??
			[...document.querySelectorAll('input')].find(e => shown(e) && e.placeholder === `+quoted(label)+`);
		if (!named || !shown(named)) return null;
		named.focus();
		named.select();
		return true;
	})()`) == nil {
		p.t.Fatalf("there is no field %q; the screen shows: %s", label, p.screen())
	}
	p.do(chromedp.KeyEvent(text))
}

// submits presses a key that sends the form with the focus.
func (p *person) submits(key string) {
	p.t.Helper()
	eval[bool](p.tab, `window.left = true`)
	p.do(chromedp.KeyEvent(key))
	p.until(`!window.left && document.readyState === 'complete'`)
}
