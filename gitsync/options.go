package gitsync

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"ordain.dev/ordain/internal/fault"
)

// rangePrefix begins a Source.Branch that is a range of versions. It means the
// highest tag in the range.
const rangePrefix = "semver:"

// CheckBranch returns an Invalid fault for a text that can never be a Source.Branch.
func CheckBranch(branch string) error {
	wanted, is := strings.CutPrefix(branch, rangePrefix)
	if is {
		if _, err := semver.NewConstraint(wanted); err != nil {
			return fault.New(opParse, fault.Invalid, fmt.Sprintf("%q is not a range of versions", printable(wanted))).
				Hint("write it as semver:^1.2, semver:~1.4.0 or semver:>=1.0 <3.0")
		}
		return nil
	}
	if strings.ContainsFunc(branch, func(r rune) bool { return r <= ' ' || r == 0x7f }) ||
		strings.HasPrefix(branch, "-") ||
		len(branch) > 250 {
		return fault.New(opParse, fault.Invalid,
			fmt.Sprintf("%q cannot be a branch, tag or commit", printable(branch))).
			Hint("give the name of a branch or tag, a full commit, or semver: and a range")
	}
	return nil
}

// highest finds the highest tag in a range of versions. A leading v is not part of
// the version. If two tags have the same version, the first by name wins. The tag may
// be broken: a lower one would take the environment back. It is empty when there is none.
func (r refSet) highest(wanted string) (full string) {
	in, err := semver.NewConstraint(wanted)
	if err != nil {
		return ""
	}
	var best *semver.Version
	names := slices.AppendSeq(r.names(), maps.Keys(r.broken))
	slices.Sort(names)
	for _, name := range names {
		tag, is := strings.CutPrefix(name, "refs/tags/")
		if !is {
			continue
		}
		v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		if err == nil && in.Check(v) && (best == nil || v.GreaterThan(best)) {
			best, full = v, name
		}
	}
	return full
}

// rangeFault returns the fault for a range without a tag in it.
func rangeFault(p place, branch string, at refSet) error {
	if err := CheckBranch(branch); err != nil {
		return err
	}
	var versions []string
	for _, name := range at.names() {
		if tag, is := strings.CutPrefix(name, "refs/tags/"); is {
			if _, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v")); err == nil {
				versions = append(versions, tag)
			}
		}
	}
	advice := "push a tag such as v1.0.0"
	if len(versions) > 0 {
		advice = "push a tag in the range, or change it; there are " + enumerate(versions, 5)
	}
	return fault.New(opFetch, fault.NotFound,
		fmt.Sprintf("no tag of %s is in the range %q", p.shown, printable(strings.TrimPrefix(branch, rangePrefix)))).
		Hint(advice)
}

// wanted returns the branch that a person asked for.
func (p place) wanted() string {
	if p.branch == "" && p.only != "HEAD" {
		return p.only
	}
	return p.branch
}

// beside returns the branch that is fetched in addition to the only one; empty for none.
func (p place) beside() string {
	if p.only == "" || p.branch == p.only || p.branch == "" && p.only == "HEAD" {
		return ""
	}
	return p.branch
}

// narrow returns the references that are fetched. If only one branch is, these are
// that branch, the one that is fetched in addition, and those that the mirror has
// already.
func (p place) narrow(all, have refSet) refSet {
	if p.only == "" {
		return all
	}
	only := p.only
	if only == "HEAD" {
		only = ""
	}
	keep := map[string]plumbing.Hash{}
	for _, branch := range []string{only, p.wanted()} {
		if full, ok := all.find(branch); ok {
			keep[full] = all.refs[full]
		}
	}
	for _, name := range p.also {
		if h, ok := all.refs[name]; ok {
			keep[name] = h
		}
	}
	if len(keep) > 0 {
		for name := range have.refs {
			if h, ok := all.refs[name]; ok {
				keep[name] = h
			}
		}
	}
	broken := map[string]error{}
	for _, branch := range []string{only, p.wanted()} {
		if full := all.meant(branch); all.broken[full] != nil {
			broken[full] = all.broken[full]
		}
	}
	return refSet{head: all.head, refs: keep, broken: broken}
}

// options returns the options of git clone that a person would have typed.
func (p place) options() string {
	out := ""
	if p.depth > 0 {
		out += fmt.Sprintf("--depth %d ", p.depth)
	}
	if p.only != "" {
		out += "--single-branch "
		if p.only != "HEAD" {
			out += "--branch " + shellQuote(p.only) + " "
		}
	}
	return out
}

// shorten makes a first fetch ask for the newest commits only; later fetches bring
// the commits since then. It returns where the history of the mirror is cut off.
func (w *web) shorten(req *packp.UploadPackRequest, into *mirror) ([]plumbing.Hash, error) {
	cut, err := into.shallow()
	if err != nil {
		return nil, err
	}
	first := w.depth > 0 && into.empty
	if !first && len(cut) == 0 {
		return nil, nil
	}
	if !w.adv.Capabilities.Supports(capability.Shallow) {
		if first {
			return nil, nil // the whole history is fetched
		}
		return nil, fault.New(opFetch, fault.Unavailable,
			"the Git server no longer supports fetching into a shortened history").
			Hint("set git_depth to 0")
	}
	if err := req.Capabilities.Set(capability.Shallow); err != nil {
		return nil, err
	}
	req.Shallows = cut
	if first {
		req.Depth = packp.DepthCommits(w.depth)
	}
	return cut, nil
}

// setShallow records where the history is cut off: more commits than before, but not at less.
func (m *mirror) setShallow(before, more, less []plumbing.Hash) error {
	cut := map[plumbing.Hash]bool{}
	for _, h := range append(slices.Clone(before), more...) {
		cut[h] = true
	}
	for _, h := range less {
		delete(cut, h)
	}
	var text strings.Builder
	for _, h := range slices.SortedFunc(
		maps.Keys(cut), func(a, b plumbing.Hash) int { return cmp.Compare(a.String(), b.String()) },
	) {
		text.WriteString(h.String() + "\n")
	}
	return writeFile(filepath.Join(m.dir, "shallow"), []byte(text.String()))
}

// shallow returns the commits at which the history is cut off.
func (m *mirror) shallow() ([]plumbing.Hash, error) {
	text, err := os.ReadFile(filepath.Join(m.dir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var cut []plumbing.Hash
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); plumbing.IsHash(name) {
			cut = append(cut, plumbing.NewHash(name))
		}
	}
	return cut, err
}

// writeShallow tells git in a checkout where the history is cut off.
func (w *worktree) writeShallow(dotGit string) error {
	text, err := os.ReadFile(filepath.Join(w.mirror, "shallow"))
	if err != nil || len(text) == 0 {
		return w.root.RemoveAll(".git/shallow")
	}
	return writeFile(filepath.Join(dotGit, "shallow"), text)
}

// lfsHead begins a pointer of Git LFS to a file that is stored elsewhere.
const lfsHead = "version https://git-lfs.github.com/spec/v1\n"

// lfsPointers returns the paths of files in a checkout that are pointers of Git LFS.
func (w *worktree) lfsPointers() []string {
	uses := false
	for _, f := range w.content.files {
		if filepath.Base(f.path) == ".gitattributes" {
			text, err := w.root.ReadFile(f.path)
			uses = uses || err == nil && strings.Contains(string(text), "filter=lfs")
		}
	}
	if !uses {
		return nil
	}
	var found []string
	for i, f := range w.content.files {
		if size := w.fresh[i].size; !f.mode.IsFile() || size < 100 || size > 1024 {
			continue
		}
		if text, err := w.root.ReadFile(f.path); err == nil && strings.HasPrefix(string(text), lfsHead) {
			found = append(found, printable(f.path))
		}
	}
	return found
}
