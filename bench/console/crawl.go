package main

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// addressesOfAKind is how many addresses of each kind of page are visited.
const addressesOfAKind = 3

// visit is one answer.
type visit struct {
	firstByte time.Duration
	wire      int // bytes of the body as they came, compressed
	status    int
	body      string // of pages, only if it was asked for
	kind      string // content type
}

// browser asks for pages as a browser does: compressed, on a connection that stays.
type browser struct {
	base   string
	client *http.Client
}

func newBrowser(base string) *browser {
	return &browser{base, &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: clients},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       time.Minute,
	}}
}

// get asks for an address. The body is kept if encoding is empty.
func (b *browser) get(ctx context.Context, address, encoding string) (v visit, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+address, nil)
	if err != nil {
		return v, err
	}
	r.Header.Set("Accept-Encoding", cmp.Or(encoding, "identity"))
	began := time.Now()
	answer, err := b.client.Do(r)
	if err != nil {
		return v, err
	}
	defer answer.Body.Close()
	// The header comes with the first byte of the body, which pages have after all of their loading.
	v = visit{firstByte: time.Since(began), status: answer.StatusCode, kind: answer.Header.Get("Content-Type")}
	if encoding == "" {
		text, err := io.ReadAll(answer.Body)
		v.body, v.wire = string(text), len(text)
		return v, err
	}
	n, err := io.Copy(io.Discard, answer.Body)
	v.wire = int(n)
	return v, err
}

var (
	link = regexp.MustCompile(`\shref="(/[^"#]*)`)
	// id matches parts of addresses that name one thing.
	id = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|^[0-9]+$|^[0-9a-f]{40}$`)
)

// kindOf returns what addresses of one page have in common: the path without names, and the names of parameters.
func kindOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	parts := strings.Split(u.Path, "/")
	for i, part := range parts {
		parts[i] = id.ReplaceAllString(part, "…")
	}
	var names []string
	for name := range u.Query() {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return strings.Join(parts, "/")
	}
	return strings.Join(parts, "/") + "?" + strings.Join(names, "&")
}

// kind is a kind of page: what was found of it, and its first visits.
type kind struct {
	name      string
	addresses []string
	first     time.Duration // the longest first visit
}

// crawl follows all links from the first page. It visits each address once, which is the first visit of it.
func crawl(ctx context.Context, b *browser) ([]*kind, error) {
	kinds, refused := map[string]*kind{}, map[string]bool{}
	var queue []string
	add := func(address string) {
		name := kindOf(address)
		k := kinds[name]
		if k == nil {
			k = &kind{name: name}
			kinds[name] = k
		}
		if len(k.addresses) < addressesOfAKind && !slices.Contains(k.addresses, address) {
			k.addresses = append(k.addresses, address)
			queue = append(queue, address)
		}
	}
	add("/")
	for len(queue) > 0 {
		address := queue[0]
		queue = queue[1:]
		v, err := b.get(ctx, address, "")
		if err != nil {
			return nil, err
		}
		switch {
		case v.status == http.StatusConflict: // a page that says why: the model is one file of several megabytes
			refused[kindOf(address)] = true
			continue
		case v.status >= 400:
			return nil, fmt.Errorf("a link leads to %s, which answers %d", address, v.status)
		}
		k := kinds[kindOf(address)]
		k.first = max(k.first, v.firstByte)
		if !strings.HasPrefix(v.kind, "text/html") {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(v.body, -1) {
			if to := html.UnescapeString(found[1]); !strings.HasPrefix(to, "/static/") {
				add(to)
			}
		}
	}
	var out []*kind
	for name, k := range kinds {
		if !refused[name] {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *kind) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}
