package gitsync

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
)

// The files of submodules are added to the content of a commit before anything is
// checked, compared or written, as if the commit had them. Each submodule has a
// mirror like any repository, and is read at the commit that its parent names.

// maxNesting is how deep submodules may be nested.
const maxNesting = 8

// maxModules is the largest size, in bytes, of .gitmodules.
const maxModules = 1 << 20

// parent is a repository with submodules, on the way from the top to a submodule.
type parent struct {
	place  place
	commit plumbing.Hash
	m      *mirror
	prefix string  // of its paths in the checkout
	over   *parent // nil for the top
}

// expand adds the files of all submodules to the content of the commit.
func (w *worktree) expand(ctx context.Context, m *mirror) error {
	r := &contentReader{content: w.content, m: m, ctx: ctx, kept: w.kept, commit: w.commit.Hash.String()}
	top := &parent{place: w.place, commit: w.commit.Hash, m: m}
	if err := w.submodulesOf(ctx, r, top, slices.Clone(w.content.submodules)); err != nil {
		return err
	}
	// A link of the commit may lead through a link of a submodule.
	return r.judgeLinks()
}

// submodulesOf adds the submodules at these paths of a repository.
func (w *worktree) submodulesOf(ctx context.Context, r *contentReader, a *parent, paths []string) error {
	urls, err := a.modules(r)
	if err != nil {
		return err
	}
	for _, at := range paths {
		inside := strings.TrimPrefix(at, a.prefix)
		raw, ok := urls[inside]
		if !ok {
			return r.refuse("%q is a submodule, and .gitmodules does not say where it comes from", printable(at)).
				Hint("add it with git submodule add, or remove it")
		}
		p, err := a.resolve(raw, w.syncer.cfg.Closed)
		if err != nil {
			return r.refuse("the submodule %q comes from a place that cannot be used: %v", printable(at), err).
				Hint("give it an https:// or ssh:// URL, or one relative to that of the repository")
		}
		hash := r.files[r.byPath[at]].hash
		if err := a.loops(r, p, hash, at); err != nil {
			return err
		}
		if err := w.addSubmodule(ctx, r, &parent{place: p, commit: hash, prefix: at + "/", over: a}, at); err != nil {
			return err
		}
	}
	return nil
}

// modules reads .gitmodules. It returns URLs by path.
func (a *parent) modules(r *contentReader) (map[string]string, error) {
	i, ok := r.byPath[a.prefix+".gitmodules"]
	if !ok {
		return nil, nil
	}
	text, err := a.m.read(r.files[i].hash, maxModules)
	if err != nil {
		return nil, r.refuse("%q cannot be read: %v", printable(r.files[i].path), err).
			Hint("run git submodule status")
	}
	modules := config.NewModules()
	if err := modules.Unmarshal(text); err != nil {
		return nil, r.refuse("%q is malformed", printable(r.files[i].path)).Hint("run git submodule status")
	}
	urls := map[string]string{}
	for _, m := range modules.Submodules {
		urls[path.Clean(m.Path)] = m.URL
	}
	return urls, nil
}

// resolve returns the place of a submodule. A submodule gets the credentials of its
// parent only if it is on the same server, and a remote repository cannot have a
// submodule on our disk. With Config.Closed, no repository can.
func (a *parent) resolve(raw string, closed bool) (place, error) {
	if strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../") || raw == ".." {
		raw = a.place.relative(raw)
	}
	p, err := locate(raw)
	if err != nil {
		return place{}, err
	}
	if p.local != "" && (a.place.local == "" || closed) {
		return place{}, errors.New("it lies on the disk of the server")
	}
	if p.credentials != (Credentials{}) {
		return place{}, errors.New("its URL holds a user name or password, which would be committed for all to read")
	}
	if p.sameHost(a.place) {
		p.credentials = a.place.credentials
	}
	p.trust, p.submodules = a.place.trust, true
	return p, nil
}

// relative resolves a relative URL against that of the repository, like git. A path
// that leads above the top stays at the top.
func (p place) relative(raw string) string {
	switch {
	case p.local != "":
		return path.Join(p.local, raw)
	case p.ssh != nil && !strings.Contains(p.shown, "://"):
		host, at, _ := strings.Cut(p.shown, ":")
		if strings.HasPrefix(p.shown[strings.Index(p.shown, "@")+1:], "[") {
			end := strings.Index(p.shown, "]:") + 1
			host, at = p.shown[:end], p.shown[end+1:]
		}
		joined := path.Join("/", at, raw)
		if !strings.HasPrefix(at, "/") {
			joined = strings.TrimPrefix(joined, "/")
		}
		return host + ":" + joined
	}
	u, err := url.Parse(p.shown)
	if err != nil {
		return raw
	}
	u.Path, u.RawPath = path.Join("/", u.Path, raw), ""
	return u.String()
}

// loops refuses a submodule that contains itself at the same commit, and one that is nested too deeply.
func (a *parent) loops(r *contentReader, p place, commit plumbing.Hash, at string) error {
	depth := 0
	for up := a; up != nil; up = up.over {
		if up.commit == commit && up.place.key() == p.key() {
			return r.refuse("the submodule %q contains itself", printable(at)).Hint("remove it from itself")
		}
		if depth++; depth >= maxNesting {
			return r.refuse("submodules are nested more than %d deep at %q", maxNesting, printable(at)).
				Hint("nest them less")
		}
	}
	return nil
}

// addSubmodule adds the files of one submodule, and of the submodules in it.
func (w *worktree) addSubmodule(ctx context.Context, r *contentReader, a *parent, at string) error {
	fail := func(err error) error {
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return fault.Wrap(opCheckout, f.Kind, err).
				Say("the submodule " + printable(at) + " cannot be checked out").
				Hint(f.Advice)
		}
		return fmt.Errorf("the submodule %s: %w", printable(at), err)
	}
	var err error
	if a.m, err = w.syncer.lend(ctx, a.place, a.commit); err != nil {
		return fail(err)
	}
	w.lent = append(w.lent, a.m)
	c, err := object.GetCommit(a.m.store, a.commit)
	if err != nil {
		return fail(err)
	}
	inside, err := a.m.readContent(ctx, &w.syncer.trees, c, func(string) bool { return false })
	if err != nil {
		return fail(err)
	}
	if len(r.files)+len(r.dirs)+len(inside.files)+len(inside.dirs) > maxFiles {
		return r.refuse("it holds more than %d files with its submodules", maxFiles).
			Hint("keep the project in smaller repositories")
	}
	for dir := range inside.dirs {
		r.dirs[a.prefix+dir] = true
	}
	for what, paths := range inside.unapplied {
		for _, path := range paths {
			r.note(what, a.prefix+path)
		}
	}
	var deeper []string
	for _, f := range inside.files {
		f.path, f.from = a.prefix+f.path, a.m
		if len(f.path) > maxPath {
			return r.refuse("the path %q is too long", printable(f.path)).Hint("rename it in the repository")
		}
		if f.mode == filemode.Submodule {
			deeper = append(deeper, f.path)
		}
		r.byPath[f.path] = len(r.files)
		r.files = append(r.files, f)
	}
	if len(deeper) == 0 {
		return nil
	}
	return w.submodulesOf(ctx, r, a, deeper)
}

// lend opens the mirror of a repository that has a commit. If the mirror does not
// have it, lend fetches.
func (s *Syncer) lend(ctx context.Context, p place, commit plumbing.Hash) (*mirror, error) {
	for try := 0; ; try++ {
		m, err := openMirror(s.mirrorDir(p))
		if err == nil && m.has(commit) {
			markUsed(m.dir)
			return m, nil
		}
		if err == nil {
			m.close()
		}
		if try > 0 {
			return nil, fault.New(opCheckout, fault.NotFound,
				fmt.Sprintf("commit %s is not in %s", short(commit.String()), p.shown)).
				Hint("push it there, to a branch or tag")
		}
		if _, err := s.share(ctx, p); err != nil {
			return nil, err
		}
	}
}

// giveBack closes the mirrors that were lent.
func (w *worktree) giveBack() {
	for _, m := range w.lent {
		m.close()
	}
	w.lent = nil
}
