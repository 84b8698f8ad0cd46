package gitsync

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"
)

// newHTTPClient makes the client that all fetches of a Syncer share.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: shortErrors{&http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
	}}}
}

// shortErrors cuts the pages that come with errors: go-git reads all of them.
type shortErrors struct{ http.RoundTripper }

func (s shortErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode >= 300 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, 4096), res.Body}
	}
	return res, err
}

// CloseIdleConnections reaches the transport through http.Client.
func (s shortErrors) CloseIdleConnections() {
	if t, ok := s.RoundTripper.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// web is a repository behind HTTP.
type web struct {
	session transport.UploadPackSession
	adv     *packp.AdvRefs
}

func (s *Syncer) openHTTP(p place) (*web, error) {
	endpoint, err := transport.NewEndpoint(p.shown)
	if err != nil {
		return nil, err
	}
	var auth transport.AuthMethod
	if c := p.credentials; c != (Credentials{}) {
		if c.Username == "" {
			c.Username = "git" // forges take any name with a token, but not none
		}
		auth = &githttp.BasicAuth{Username: c.Username, Password: c.Password}
	}
	session, err := githttp.NewClient(s.http).NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, err
	}
	return &web{session: session}, nil
}

func (w *web) close() { _ = w.session.Close() }

func (w *web) refs(ctx context.Context) (refSet, error) {
	adv, err := w.session.AdvertisedReferencesContext(ctx)
	if err != nil {
		if decode := (*packp.ErrUnexpectedData)(nil); errors.As(err, &decode) || strings.Contains(err.Error(), "pkt-line") || strings.Contains(err.Error(), "pkt-len") {
			err = errNotGit
		}
		return refSet{}, err
	}
	w.adv = adv
	set := refSet{refs: map[string]plumbing.Hash{}}
	for name, hash := range adv.References {
		if mirrored(name) {
			set.refs[name] = hash
		}
	}
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(link, "HEAD:"); ok {
			set.head = target
		}
	}
	if set.head == "" && adv.Head != nil {
		// Old servers do not say it: guess as git does.
		for _, guess := range append([]string{"main", "master"}, set.branches()...) {
			if set.refs["refs/heads/"+guess] == *adv.Head {
				set.head = "refs/heads/" + guess
				break
			}
		}
	}
	if len(set.refs) == 0 {
		return refSet{}, transport.ErrEmptyRemoteRepository
	}
	return set, nil
}

func (w *web) peeled(name string, h plumbing.Hash) plumbing.Hash {
	if peeled, ok := w.adv.Peeled[name]; ok {
		return peeled
	}
	return h
}

func (w *web) fetch(ctx context.Context, into *mirror, want []plumbing.Hash) (string, error) {
	req := packp.NewUploadPackRequestFromCapabilities(w.adv.Capabilities)
	if w.adv.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return "", err
		}
	}
	req.Wants = want
	req.Haves = into.known()
	res, err := w.session.UploadPack(ctx, req)
	if err != nil {
		return "", err
	}
	defer res.Close()
	said := &limited{max: 8 << 10}
	var pack io.Reader = res
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		d := sideband.NewDemuxer(sideband.Sideband64k, res)
		d.Progress = said
		pack = d
	case req.Capabilities.Supports(capability.Sideband):
		d := sideband.NewDemuxer(sideband.Sideband, res)
		d.Progress = said
		pack = d
	}
	err = storePack(into, pack)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return said.text(), err
}

// storePack stores a big pack as it is, and the objects of a small one one by
// one: a pack per push would slow every look-up down.
func storePack(into *mirror, pack io.Reader) error {
	r := bufio.NewReaderSize(pack, 64<<10)
	header, err := r.Peek(12)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(header[8:]) > looseLimit || into.empty {
		return packfile.UpdateObjectStorage(into.store, r)
	}
	arrived := memory.NewStorage()
	if err := packfile.UpdateObjectStorage(arrived, r); err != nil {
		return err
	}
	// The tips come last: once they are there, all that they need is.
	for _, some := range []map[plumbing.Hash]plumbing.EncodedObject{arrived.Blobs, arrived.Trees} {
		for _, o := range some {
			if err := into.put(o); err != nil {
				return err
			}
		}
	}
	return storeHistory(into, arrived)
}

// storeHistory stores commits after their parents, and tags after all.
func storeHistory(into *mirror, arrived *memory.Storage) error {
	stored := map[plumbing.Hash]bool{}
	for start := range arrived.Commits {
		stack := []plumbing.Hash{start}
		for len(stack) > 0 {
			h := stack[len(stack)-1]
			o := arrived.Commits[h]
			if o == nil || stored[h] {
				stack = stack[:len(stack)-1]
				continue
			}
			c := &object.Commit{}
			if err := c.Decode(o); err != nil {
				return err
			}
			depth := len(stack)
			for _, parent := range c.ParentHashes {
				if arrived.Commits[parent] != nil && !stored[parent] {
					stack = append(stack, parent)
				}
			}
			if len(stack) > depth {
				continue
			}
			if err := into.put(o); err != nil {
				return err
			}
			stored[h] = true
		}
	}
	for _, o := range arrived.Tags {
		if err := into.put(o); err != nil {
			return err
		}
	}
	return nil
}

// known lists commits that the mirror has, so that the remote leaves out what
// they need: the tips, and some way down from each.
func (m *mirror) known() []plumbing.Hash {
	const perTip, most = 32, 512
	seen := map[plumbing.Hash]bool{}
	var list []plumbing.Hash
	add := func(h plumbing.Hash) bool {
		if seen[h] || len(list) == most {
			return false
		}
		seen[h] = true
		list = append(list, h)
		return true
	}
	names := m.refs.names()
	for _, name := range names {
		if !m.has(m.refs.refs[name]) {
			continue
		}
		add(m.refs.refs[name])
	}
	for _, name := range names {
		h := m.refs.refs[name]
		for range perTip {
			c, err := object.GetCommit(m.store, h)
			if err != nil || len(c.ParentHashes) == 0 || !m.has(c.ParentHashes[0]) {
				break
			}
			if h = c.ParentHashes[0]; !add(h) {
				break
			}
		}
	}
	return list
}

// limited keeps the beginning of what a remote says.
type limited struct {
	max int
	buf bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.max - l.buf.Len(); room > 0 {
		l.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// text gives the lines, without progress that was overwritten on the terminal.
func (l *limited) text() string {
	var out strings.Builder
	for line := range strings.Lines(l.buf.String()) {
		line = strings.TrimRight(line, "\r\n")
		if i := strings.LastIndexByte(line, '\r'); i >= 0 {
			line = line[i+1:]
		}
		if line = strings.ToValidUTF8(line, "?"); line != "" {
			out.WriteString("remote: " + strings.Map(func(r rune) rune {
				if r < 0x20 || r == 0x7f {
					return ' '
				}
				return r
			}, line) + "\n")
		}
	}
	return out.String()
}
