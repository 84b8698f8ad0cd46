package gitsync

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"ordain.dev/ordain/gitsync/objects"
)

// gitDirs finds the Git folders of a local repository, bare or not: its own, and the
// one with objects and branches. The two differ for a linked worktree.
func gitDirs(path string) (dot, common string, err error) {
	dot = path
	info, err := os.Stat(filepath.Join(path, ".git"))
	switch {
	case err == nil && info.IsDir():
		dot = filepath.Join(path, ".git")
	case err == nil:
		text, err := os.ReadFile(filepath.Join(path, ".git"))
		if err != nil {
			return "", "", err
		}
		to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
		if !ok {
			return "", "", transport.ErrRepositoryNotFound
		}
		if dot = strings.TrimSpace(to); !filepath.IsAbs(dot) {
			dot = filepath.Join(path, dot)
		}
	case errors.Is(err, fs.ErrPermission):
		return "", "", err
	}
	common = dot
	if text, err := os.ReadFile(filepath.Join(dot, "commondir")); err == nil {
		if common = strings.TrimSpace(string(text)); !filepath.IsAbs(common) {
			common = filepath.Join(dot, common)
		}
	}
	for _, must := range []string{filepath.Join(dot, "HEAD"), filepath.Join(common, "objects")} {
		if _, err := os.Stat(must); err != nil {
			if errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fs.ErrPermission) {
				err = transport.ErrRepositoryNotFound
			}
			return "", "", err
		}
	}
	return dot, common, nil
}

// local is a repository on this machine. It is read where it lies, and never written
// to.
type local struct {
	place  place
	dot    string // the Git folder of the repository, or of a linked worktree
	common string // the Git folder with objects and branches
	config *filesystem.Storage
	// stores are the objects of the repository, and those that it borrows.
	stores []*objects.Store
	// shallow commits were fetched without their parents.
	shallow map[plumbing.Hash]bool
}

func openLocal(p place) (*local, error) {
	dot, common, err := gitDirs(p.local)
	if err != nil {
		return nil, err
	}
	var fsys billy.Filesystem = osfs.New(dot)
	if common != dot {
		fsys = dotgit.NewRepositoryFilesystem(fsys, osfs.New(common))
	}
	l := &local{place: p, dot: dot, common: common, config: filesystem.NewStorage(fsys, nil)}
	if _, err := git.Open(l.config, nil); err != nil { // checks format and extensions
		l.close()
		return nil, err
	}
	borrowed, err := alternates(filepath.Join(common, "objects"), 5)
	if err != nil {
		l.close()
		return nil, err
	}
	for _, dir := range append([]string{filepath.Join(common, "objects")}, borrowed...) {
		store, err := objects.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the lender is gone; the objects that we need may be elsewhere
		}
		if err != nil {
			l.close()
			return nil, err
		}
		l.stores = append(l.stores, store)
	}
	shallow, err := l.config.Shallow()
	if err != nil {
		l.close()
		return nil, err
	}
	l.shallow = make(map[plumbing.Hash]bool, len(shallow))
	for _, h := range shallow {
		l.shallow[h] = true
	}
	return l, nil
}

// alternates returns the object folders that a repository borrows from, directly or through others.
func alternates(objects string, depth int) ([]string, error) {
	f, err := os.Open(filepath.Join(objects, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) || depth == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		dir := strings.TrimSpace(lines.Text())
		if dir == "" || dir[0] == '#' {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objects, dir)
		}
		more, err := alternates(dir, depth-1)
		if err != nil {
			return nil, err
		}
		found = append(append(found, dir), more...)
	}
	return found, lines.Err()
}

func (l *local) close() {
	for _, s := range l.stores {
		s.Close()
	}
	_ = l.config.Close()
}

// object finds an object in one of the stores.
func (l *local) object(h plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, s := range l.stores {
		o, err := s.EncodedObject(plumbing.AnyObject, h)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return o, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

func (l *local) peeled(_ string, h plumbing.Hash) (plumbing.Hash, error) {
	for range 10 {
		o, err := l.object(h)
		if err != nil {
			return h, err
		}
		switch o.Type() {
		case plumbing.CommitObject:
			return h, (&object.Commit{}).Decode(o)
		case plumbing.TagObject:
		default: // a tag of a file or folder
			return h, nil
		}
		t := &object.Tag{}
		if err := t.Decode(o); err != nil {
			return h, err
		}
		h = t.Target
	}
	return h, nil
}

func (l *local) fetch(ctx context.Context, into *mirror, want []plumbing.Hash) (string, error) {
	for _, h := range want {
		if _, err := l.peeled("", h); err != nil {
			return "", err
		}
	}
	if into.empty && len(l.stores) == 1 {
		if err := copyObjects(ctx, filepath.Join(l.common, "objects"), into.objects()); err != nil {
			return "", err
		}
	}
	w := walk{from: l, have: into.has, seen: map[plumbing.Hash]bool{}}
	if err := w.closure(ctx, want); err != nil {
		return "", err
	}
	if len(l.shallow) > 0 {
		shallow, err := l.config.Shallow()
		if err == nil {
			err = into.setShallow(nil, shallow, nil)
		}
		if err != nil {
			return "", err
		}
	}
	return "", into.store.Write(w.missing, func(h plumbing.Hash) (plumbing.EncodedObject, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.object(h)
	})
}

// copyObjects copies packs and loose objects as files, which is the quickest way to a
// first mirror. It lists the packs again until there is no new one, because the
// repository may be repacked at the same time.
func copyObjects(ctx context.Context, from, to string) error {
	for range 5 {
		packs, err := os.ReadDir(filepath.Join(from, "pack"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		copied := 0
		for _, p := range packs {
			name, ok := strings.CutSuffix(p.Name(), ".idx")
			if !ok {
				continue
			}
			if _, err := os.Stat(filepath.Join(to, "pack", p.Name())); err == nil {
				continue
			}
			for _, suffix := range []string{".pack", ".idx"} { // a pack counts once it has its index
				err := copyFile(ctx, filepath.Join(from, "pack", name+suffix), filepath.Join(to, "pack", name+suffix))
				if errors.Is(err, fs.ErrNotExist) {
					break // it was repacked into another
				}
				if err != nil {
					return err
				}
			}
			copied++
		}
		fans, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, fan := range fans {
			if len(fan.Name()) != 2 || !fan.IsDir() {
				continue
			}
			objects, err := os.ReadDir(filepath.Join(from, fan.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, o := range objects {
				target := filepath.Join(to, fan.Name(), o.Name())
				if _, err := os.Lstat(target); err == nil || len(o.Name()) != 38 {
					continue
				}
				if err := copyFile(ctx, filepath.Join(from, fan.Name(), o.Name()), target); err != nil &&
					!errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		if copied == 0 {
			return nil
		}
	}
	return nil
}

// copyFile copies a file to a new one, which is read-only.
func copyFile(ctx context.Context, from, to string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}
