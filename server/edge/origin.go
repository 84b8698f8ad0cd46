package edge

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// foreign reports whether a page of another origin made a browser send a request. Of safe requests it lets through
// those that show the answer as a page of its own, such as a link to the console.
func (g *Guard) foreign(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return g.origins.Check(r) != nil
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// CheckActingGet refuses a GET that a browser sends on behalf of a page of another origin. Calls whose GET does
// something check it, because links and images send a GET.
func CheckActingGet(r *http.Request) error {
	refused := fault.New("edge", fault.Forbidden, "a page of another site sent this request; nothing was done").
		Hint("send it with POST, from a program or from the console")
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return nil
	case "":
	default:
		return refused
	}
	for _, header := range []string{"Origin", "Referer"} {
		if value := r.Header.Get(header); value != "" {
			if u, err := url.Parse(value); err != nil || u.Host != r.Host {
				return refused
			}
			return nil
		}
	}
	// Browsers leave out Sec-Fetch-Site where neither TLS nor loopback protects the connection, and a page can make
	// them leave out Referer. Programs do not call themselves Mozilla.
	if strings.HasPrefix(r.UserAgent(), "Mozilla/") {
		return refused
	}
	return nil
}

// CheckJSON refuses a body that does not say that it is JSON. A page of any site can send forms and plain text, but
// JSON only with the server's consent. Clients of Inmanta send no content type with PUT, and that of a form with
// POST; they are recognised by the headers that only browsers send.
func CheckJSON(r *http.Request) error {
	value := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(value)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Referer") != ""
	if !browser && (value == "" || media == "application/x-www-form-urlencoded") {
		return nil
	}
	return ErrContentType
}

// ErrContentType is the error for a body that is not JSON; it is answered with 415.
var ErrContentType = errors.New("the body must have the content type application/json")
