package gitsync

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"ordain.dev/ordain/internal/fault"
)

// go-git does not announce the capability multi_ack, because it does not negotiate in
// rounds, and Azure DevOps refuses clients without it. We can announce it: we send all
// commits that we have at once, and read any number of answers.
func init() {
	transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack}
}

// packSession speaks Git's pack protocol with one repository, over HTTP or SSH.
type packSession interface {
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// web is a repository behind HTTP or SSH.
type web struct {
	place   place
	session packSession
	adv     *packp.AdvRefs
	depth   int // of a first fetch, in commits; 0 for all
}

func (w *web) close() { _ = w.session.Close() }

func (w *web) refs(ctx context.Context) (refSet, error) {
	adv, err := w.session.AdvertisedReferencesContext(ctx)
	if err != nil {
		decode := (*packp.ErrUnexpectedData)(nil)
		switch {
		case errors.As(err, &decode) && bytes.HasPrefix(decode.Data, []byte("version 2")):
			return refSet{}, fault.New(opFetch, fault.Invalid,
				w.place.shown+" speaks only version 2 of Git's protocol, which is supported over HTTP alone").
				Hint("use the repository's https:// URL, or let the server speak version 0 as well")
		case decode != nil ||
			strings.Contains(err.Error(), "pkt-line") ||
			strings.Contains(err.Error(), "pkt-len"):
			err = errNotGit
		}
		return refSet{}, err
	}
	w.adv = adv
	set := refSet{refs: map[string]plumbing.Hash{}}
	for name, hash := range adv.References {
		if w.place.wants(name) {
			set.refs[name] = hash
		}
	}
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(link, "HEAD:"); ok {
			set.head = target
		}
	}
	if set.head == "" && adv.Head != nil {
		// Old servers do not say which branch HEAD is: guess like git.
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

func (w *web) peeled(name string, h plumbing.Hash) (plumbing.Hash, error) {
	if peeled, ok := w.adv.Peeled[name]; ok {
		return peeled, nil
	}
	return h, nil
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
	shallow, err := w.shorten(req, into)
	if err != nil {
		return "", err
	}
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
	err = into.store.Receive(pack)
	if err == nil && len(res.Shallows)+len(res.Unshallows) > 0 {
		err = into.setShallow(shallow, res.Shallows, res.Unshallows)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return said.text(), err
}

// known lists commits that the mirror has, so that the remote does not send what they
// need: the tips, and some of the first parents of each.
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

// limited keeps the first bytes of the messages of a remote.
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

// text returns the messages as lines, without progress that a terminal would have overwritten.
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
