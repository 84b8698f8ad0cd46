package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
)

// Noor makes a token on her own page, where it is shown once and offers only the places that she sees. It works until
// she revokes it.
func TestPersonalTokensOnTheOwnPage(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := guardedConsole(t)
	r.AddPerson(t, "noor", access.Binding{Role: access.Operator, Scope: access.Scope{Environment: r.Sandbox.ID}})
	b := browse(t, h)
	b.open("/login?next=/account")
	b.login("noor")
	b.until(`location.pathname == '/account'`)
	b.accessible("account with tokens")
	places := eval[string](b, `[...document.querySelectorAll('#token-place option')].map(o => o.textContent).join('|')`)
	if strings.Contains(places, r.Production.Name) || !strings.Contains(places, r.Sandbox.Name) {
		t.Errorf("the places are %s", places)
	}
	b.do(chromedp.SetValue(chromedp.CSS(`#token-place`), "environment "+r.Sandbox.ID.String()))
	b.fill(`form[action="/account/token"]`, map[string]string{"name": "dashboard", "role": "viewer"})
	b.until(`document.querySelector('#token')`)
	b.accessible("new token")
	token := eval[string](b, `document.querySelector('#token').value`)
	use := func() bool {
		q := httptest.NewRequest("GET", "/", nil)
		q.Header.Set("Authorization", "Bearer "+token)
		p, err := r.API().Authenticate(q)
		return err == nil && p.Decide(access.SeeResources, access.Target{Environment: r.Sandbox.ID}).Allowed &&
			!p.Decide(access.Halt, access.Target{Environment: r.Sandbox.ID}).Allowed
	}
	if !use() {
		t.Error("the token does not work")
	}
	b.open("/account")
	if text := eval[string](b, `document.documentElement.outerHTML`); strings.Contains(text, token) {
		t.Error("the page shows the token again")
	}
	b.do(chromedp.Click(chromedp.CSS(`form[action="/account/token/revoke"] button`)))
	b.until(`!document.querySelector('form[action="/account/token/revoke"]')`)
	if use() {
		t.Error("the token works after it was revoked")
	}
	if w := get(t, h, "/account"); w.Code == http.StatusOK {
		t.Error("a stranger sees the page")
	}
}
