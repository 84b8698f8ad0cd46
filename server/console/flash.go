package console

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"ordain.dev/ordain/server/edge"
)

// What a form did is said once, on the page that it leads to:
//
//	form ─▶ redirect to /e/…?done=saved#setting-x
//	     ─▶ flashing moves done into a cookie ─▶ the page says it, and the cookie is gone
//
// So a reload says nothing again, and neither does an address that somebody passes on. The cookie names one of
// doneTexts and the part of the page that it belongs to; it cannot bring words of its own. It is sent to that page
// only and lives for a minute.
const (
	flashCookie = "ordain-done"
	flashTime   = 60 // seconds
)

// flash is what the form before a page did.
type flash struct {
	Done string // a key of doneTexts
	Part string // the id of the element that it is about; empty: the whole page
}

type flashKey struct{}

var partForm = regexp.MustCompile(`^[A-Za-z0-9_-]{0,80}$`)

// flashing moves ?done=… of the redirects that answer forms into a cookie.
func flashing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w = &flashWriter{w, r}
		}
		next.ServeHTTP(w, r)
	})
}

type flashWriter struct {
	http.ResponseWriter
	request *http.Request
}

// Unwrap returns the writer beneath, for http.ResponseController.
func (w *flashWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader takes what was done out of the address of a redirect.
func (w *flashWriter) WriteHeader(code int) {
	if code == http.StatusSeeOther {
		w.move()
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *flashWriter) move() {
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || !to.Query().Has("done") {
		return
	}
	query := to.Query()
	f := flash{Done: query.Get("done"), Part: to.Fragment}
	query.Del("done")
	to.RawQuery = query.Encode()
	w.Header().Set("Location", to.String())
	if doneTexts[f.Done] == "" {
		return
	}
	if !partForm.MatchString(f.Part) {
		f.Part = ""
	}
	value := strings.Join([]string{f.Done, f.Part, to.Path}, "|")
	encoded := base64.RawURLEncoding.EncodeToString([]byte(value))
	http.SetCookie(w.ResponseWriter, flashOf(w.request, to.EscapedPath(), encoded, flashTime))
}

func flashOf(r *http.Request, path, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: flashCookie, Value: value, Path: path, MaxAge: age, HttpOnly: true, Secure: edge.IsSecure(r),
		SameSite: http.SameSiteStrictMode,
	}
}

// takeFlash returns a request that carries what the form before this page did, and makes the browser forget it.
func takeFlash(w http.ResponseWriter, r *http.Request) *http.Request {
	for _, cookie := range r.CookiesNamed(flashCookie) {
		text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
		parts := strings.SplitN(string(text), "|", 3)
		if err != nil || len(parts) != 3 || parts[2] != r.URL.Path {
			continue // that of a page above this one
		}
		http.SetCookie(w, flashOf(r, r.URL.EscapedPath(), "", -1))
		f := flash{Done: parts[0], Part: parts[1]}
		if doneTexts[f.Done] != "" && partForm.MatchString(f.Part) {
			r = r.WithContext(context.WithValue(r.Context(), flashKey{}, f))
		}
	}
	return r
}

// flashed returns what the form before this page did; the zero value is nothing.
func flashed(r *http.Request) flash {
	f, _ := r.Context().Value(flashKey{}).(flash)
	return f
}
