package gitsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/provenance"
)

// Checkout makes dir an exact copy of a commit, as its .gitattributes ask for. Everything that is not in the
// commit is removed, except for the names of Config.Keep at the top; files that are
// right already are not touched. dir is an absolute path, is created when it is
// missing, and becomes a working copy that git understands. A commit that the mirror
// lacks is fetched. When the commit is not safe to check out or cannot be read, dir
// stays as it is.
func (s *Syncer) Checkout(ctx context.Context, src Source, commit, dir string) (Report, error) {
	at := "git -C " + shellQuote(dir)
	report := Report{
		Command: at + " checkout --force " + printable(commit) + " && " + at + " clean -ffdx" + s.excludes(),
	}
	err := s.checkOut(ctx, src, commit, dir, &report)
	report.Output = endLine(report.Output)
	return report, err
}

// excludes returns the options of git clean for the names that are kept.
func (s *Syncer) excludes() string {
	var out strings.Builder
	for _, k := range s.cfg.Keep {
		out.WriteString(" -e " + shellQuote("/"+k))
	}
	return out.String()
}

func (s *Syncer) checkOut(ctx context.Context, src Source, commit, dir string, report *Report) error {
	p, err := src.locate()
	if err != nil {
		return err
	}
	if !plumbing.IsHash(commit) {
		return fault.New(opCheckout, fault.Invalid, fmt.Sprintf("%q is not a full commit hash", printable(commit))).
			Hint("fetch first, and check out the commit that Fetch returns")
	}
	if !filepath.IsAbs(dir) {
		return fault.New(opCheckout, fault.Invalid, "the folder of the checkout is not absolute: "+dir)
	}
	unlock, err := s.lockCheckout(ctx, dir)
	if err != nil {
		return diskFault(opCheckout, "the folder "+dir+" cannot be used for the checkout", err)
	}
	defer unlock()

	w := &worktree{dir: dir, kept: s.kept, keep: s.cfg.Keep, place: p, branch: src.Branch, report: report, syncer: s}
	mirrorDir := s.mirrorDir(p)
	markUsed(mirrorDir)
	stage := func(m *mirror) error { return w.prepare(ctx, m, plumbing.NewHash(commit)) }
	try := func() error {
		_, err := withMirror(mirrorDir, func(m *mirror) (struct{}, error) { return struct{}{}, stage(m) })
		return err
	}
	err = try()
	if errors.Is(err, errNoCommitHere) || errors.Is(err, errNoMirror) {
		// The commit was never fetched, or the mirror was removed: fetch its branch.
		if _, err = s.share(ctx, p); err == nil {
			err = try()
		}
	}
	if errors.Is(err, errCorrupt) {
		if err = s.repair(ctx, p, mirrorDir, stage, err); err == nil {
			report.Rebuilt = true
			if err = try(); errors.Is(err, errCorrupt) {
				err = p.damaged(opCheckout, err)
			}
		}
	}
	if errors.Is(err, errNoCommitHere) {
		err = fault.New(opCheckout, fault.NotFound, fmt.Sprintf("commit %s is not in %s", short(commit), p.shown)).
			Hint("it may have been force-pushed away: fetch again and take the commit that the branch has now")
	}
	if err == nil {
		err = w.apply(ctx)
	}
	w.cleanup()
	if err != nil {
		return diskFault(opCheckout, fmt.Sprintf("commit %s could not be checked out to %s", short(commit), dir), err)
	}
	report.Output = w.describe(commit)
	if report.Rebuilt {
		report.Output = "The mirror was damaged; it was made again.\n" + report.Output
	}
	return nil
}

// lockCheckout creates the folder, and waits until no other checkout uses it.
func (s *Syncer) lockCheckout(ctx context.Context, dir string) (func(), error) {
	unlockHere, err := s.checkout.lock(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		unlockHere()
		return nil, err
	}
	unlock, err := lockFile(ctx, dir, os.O_RDONLY)
	if err != nil {
		unlockHere()
		return nil, err
	}
	return func() { unlock(); unlockHere() }, nil
}

// worktree is one run of Checkout: prepare reads and stages, then apply changes the folder.
type worktree struct {
	dir      string
	kept     func(string) bool
	keep     []string
	place    place
	branch   string
	report   *Report
	syncer   *Syncer
	pointers []string  // files that are Git LFS pointers
	lent     []*mirror // mirrors of submodules, open while files are staged

	m       *mirror // while files are compared and staged
	root    *os.Root
	mirror  string
	commit  *object.Commit
	content *content
	index   map[string]*entry // of the last checkout
	written time.Time         // when index was written
	// converted says how files were converted by the last checkout, by path; see conversionsFile.
	converted map[string]string
	unencoded sync.Map        // paths of files whose content does not fit their encoding, with the reason
	remove    []string        // paths of files and whole folders to remove
	stage     []int           // the files to write, as indexes into content.files
	fresh     []entry         // new index entries, parallel to content.files; without a name until the file is right
	there     map[string]bool // folders of the commit that exist already
}

var errNoCommitHere = errors.New("there is no such commit")

// staging is the folder in which new files wait until all of them are complete.
const staging = ".git/ordain-staging"

// prepare reads the commit, compares it with the folder, and stages the new files. It may be called again after
// it failed.
func (w *worktree) prepare(ctx context.Context, m *mirror, commit plumbing.Hash) error {
	c, err := object.GetCommit(m.store, commit)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return errNoCommitHere
	}
	if err != nil {
		return fmt.Errorf("%w: commit %s: %w", errCorrupt, short(commit.String()), err)
	}
	w.commit, w.mirror, w.m = c, m.dir, m
	if w.content, err = m.readContent(ctx, &w.syncer.trees, c, w.kept); err != nil {
		return err
	}
	defer w.giveBack()
	if p := w.place; p.submodules && len(w.content.submodules) > 0 {
		if err := w.expand(ctx, m); err != nil {
			return err
		}
	}
	if err := w.claim(); err != nil {
		return err
	}
	if w.root == nil {
		if w.root, err = os.OpenRoot(w.dir); err != nil {
			return err
		}
	}
	w.index, w.written = readIndex(filepath.Join(w.dir, ".git", "index"))
	w.converted = readConversions(w.dir)
	if err := w.compare(ctx); err != nil {
		return err
	}
	if err := w.weigh(m); err != nil {
		return err
	}
	return w.stageFiles(ctx, m)
}

// weigh refuses files that are too large, before any file is read.
func (w *worktree) weigh(m *mirror) error {
	for _, i := range w.stage {
		if err := m.weigh(w.content.files[i], w.place, w.commit.Hash.String()); err != nil {
			return err
		}
	}
	return nil
}

// weigh refuses a file that is larger than its place allows.
func (m *mirror) weigh(f file, p place, commit string) error {
	from := m
	if f.from != nil {
		from = f.from
	}
	size, err := from.store.EncodedObjectSize(f.hash)
	if err != nil {
		return fmt.Errorf("%w: file %s (%s): %w", errCorrupt, short(f.hash.String()), printable(f.path), err)
	}
	if p.maxFile > 0 && size > p.maxFile {
		return fault.New(opCheckout, fault.Invalid, fmt.Sprintf(
			"commit %s of %s cannot be checked out: %q has %d MiB, and the setting git_max_file allows %d",
			short(commit), p.shown, printable(f.path), (size+1<<20-1)>>20, p.maxFile>>20)).
			Hint("keep what is that large outside of the repository, or raise git_max_file")
	}
	return nil
}

// claim refuses a folder that is neither empty nor a checkout: it may belong to
// somebody, and everything in it would be removed.
func (w *worktree) claim() error {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			return nil
		}
	}
	for _, e := range entries {
		if !w.kept(e.Name()) {
			return fault.New(opCheckout, fault.Conflict,
				fmt.Sprintf("the folder %s is not empty and is not a Git checkout (it holds %q)", w.dir,
					printable(e.Name()))).
				Hint("move its contents away; nothing in it was changed")
		}
	}
	return nil
}

// compare finds what to remove and what to write.
func (w *worktree) compare(ctx context.Context) error {
	w.remove, w.stage, w.fresh = nil, nil, make([]entry, len(w.content.files))
	if err := w.scan(ctx); err != nil {
		return err
	}
	for i, f := range w.content.files {
		if f.mode != filemode.Submodule && w.fresh[i].name == "" {
			w.stage = append(w.stage, i)
		}
	}
	return nil
}

// same reports whether a file on the disk is the one in the commit. If the index of
// the last checkout does not show that, the file is read.
func (w *worktree) same(f file, info fs.FileInfo) bool {
	full := filepath.Join(w.dir, filepath.FromSlash(f.path))
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(full)
		return f.mode == filemode.Symlink && err == nil && target == f.target
	case !info.Mode().IsRegular(),
		f.mode == filemode.Symlink,
		(info.Mode()&0o100 != 0) != (f.mode == filemode.Executable):
		return false
	}
	if old := w.index[f.path]; old != nil && old.hash == f.hash && old.mode == f.mode &&
		untouched(old, info, w.written) && w.sameConversion(f) {
		return true
	}
	if f.conversion != (conversion{}) {
		want, err := w.convert(f)
		if err != nil || info.Size() != int64(len(want)) {
			return false // staging it will say what is wrong
		}
		have, err := os.ReadFile(full)
		return err == nil && bytes.Equal(have, want)
	}
	in, err := os.Open(full)
	if err != nil {
		return false
	}
	defer in.Close()
	h := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	n, err := io.Copy(h, in)
	return err == nil && n == info.Size() && h.Sum() == f.hash
}

// stageFiles writes the new files into the staging folder. If objects are missing
// or the disk is full, it fails here, before the checkout has changed.
func (w *worktree) stageFiles(ctx context.Context, m *mirror) error {
	info, err := w.root.Lstat(".git")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.IsDir(): // it refers to another folder
		if err := w.root.Remove(".git"); err != nil {
			return err
		}
	}
	if err := w.root.RemoveAll(staging); err != nil {
		return err
	}
	if len(w.stage) == 0 {
		return nil
	}
	if err := w.root.MkdirAll(staging, 0o755); err != nil {
		return err
	}
	for n, i := range w.stage {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.stageFile(m, w.content.files[i], path.Join(staging, strconv.Itoa(n))); err != nil {
			return err
		}
	}
	return nil
}

func (w *worktree) stageFile(m *mirror, f file, to string) error {
	if f.mode == filemode.Symlink {
		return w.root.Symlink(f.target, to)
	}
	damaged := func(err error) error {
		return fmt.Errorf("%w: file %s (%s): %w", errCorrupt, short(f.hash.String()), printable(f.path), err)
	}
	mode := fs.FileMode(0o644)
	if f.mode == filemode.Executable {
		mode = 0o755
	}
	if f.conversion != (conversion{}) {
		text, err := w.convert(f)
		if err != nil {
			return err
		}
		return w.writeNew(to, text, mode)
	}
	if f.from != nil {
		m = f.from
	}
	o, err := m.store.EncodedObject(plumbing.BlobObject, f.hash)
	if err != nil {
		return damaged(err)
	}
	in, err := o.Reader()
	if err != nil {
		return damaged(err)
	}
	defer in.Close()
	out, err := w.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	// An error while reading means a damaged mirror; one while writing is the disk's.
	h := plumbing.NewHasher(plumbing.BlobObject, o.Size())
	var broken error
	_, err = io.Copy(io.MultiWriter(out, h), readerFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		if err != nil && err != io.EOF {
			broken = err
		}
		return n, err
	}))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	switch {
	case broken != nil:
		return damaged(broken)
	case err != nil:
		return err
	case h.Sum() != f.hash:
		return damaged(errors.New("it has another content"))
	}
	return nil
}

// writeNew writes a file that is not there.
func (w *worktree) writeNew(to string, text []byte, mode fs.FileMode) error {
	out, err := w.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// apply moves everything to its place. If it is interrupted, the next checkout can do all of it again.
func (w *worktree) apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, rel := range w.remove {
		if err := w.removeAll(rel); err != nil {
			return err
		}
		w.report.Removed++
	}
	var dirs []string
	for d := range w.content.dirs {
		if !w.there[d] {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs) // parents first
	for _, d := range dirs {
		if err := w.root.Mkdir(d, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for n, i := range w.stage {
		f := w.content.files[i]
		err := w.root.Rename(path.Join(staging, strconv.Itoa(n)), f.path)
		if err != nil {
			// There may be a folder where the commit has a file.
			if info, statErr := w.root.Lstat(f.path); statErr == nil && info.IsDir() {
				if err = w.removeAll(f.path); err == nil {
					err = w.root.Rename(path.Join(staging, strconv.Itoa(n)), f.path)
				}
			}
		}
		if err != nil {
			return err
		}
		info, err := w.root.Lstat(f.path)
		if err != nil {
			return err
		}
		w.fresh[i] = f.entry(info)
		w.report.Written++
	}
	w.report.Unchanged = -w.report.Written
	for i := range w.fresh {
		if w.fresh[i].name != "" {
			w.report.Unchanged++
		}
	}
	w.pointers = w.lfsPointers()
	return w.writeGitDir()
}

// removeAll removes a file or folder, even if it has folders that are read-only.
func (w *worktree) removeAll(rel string) error {
	err := w.root.RemoveAll(rel)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(filepath.Join(w.dir, filepath.FromSlash(rel)), func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			if inside, relErr := filepath.Rel(w.dir, p); relErr == nil {
				_ = w.root.Chmod(inside, 0o700)
			}
		}
		return nil
	})
	return w.root.RemoveAll(rel)
}

func (w *worktree) cleanup() {
	if w.root == nil {
		return
	}
	_ = w.root.RemoveAll(staging)
	_ = w.root.Close()
}

func (w *worktree) describe(commit string) string {
	var out strings.Builder
	subject, _, _ := strings.Cut(strings.TrimSpace(w.commit.Message), "\n")
	fmt.Fprintf(&out, "HEAD is now at %s %s\n%d written, %d removed, %d unchanged\n", short(commit),
		provenance.Clean(subject), w.report.Written, w.report.Removed, w.report.Unchanged)
	if subs := w.content.submodules; len(subs) > 0 && !w.place.submodules {
		fmt.Fprintf(&out, "Submodules are not fetched; these folders are empty: %s. "+
			"Switch the setting git_submodules on, or name the modules in project.yml.\n", enumerate(subs, 10))
	}
	w.unencoded.Range(func(path, why any) bool {
		w.content.note(why.(string), path.(string))
		return true
	})
	out.WriteString(w.content.unappliedText())
	if pointers := w.pointers; len(pointers) > 0 {
		fmt.Fprintf(&out, "Git LFS keeps the content of these files elsewhere, which is not fetched; "+
			"the checkout has pointers in their place: %s. "+
			"Commit the files themselves, or fetch them where they are used.\n", enumerate(pointers, 10))
	}
	return out.String()
}
