package gitsync

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// writeGitDir writes the .git folder of a checkout, so that people can look around
// in it with git. It holds little: the index, by which the next checkout finds what
// changed; the URL of the repository; and no objects, because it borrows those of the
// mirror. Changes that people make in it are lost at the next checkout.
func (w *worktree) writeGitDir() error {
	git := filepath.Join(w.dir, ".git")
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := w.root.MkdirAll(".git/"+dir, 0o755); err != nil {
			return err
		}
	}
	list := make([]entry, 0, len(w.content.files))
	for i, f := range w.content.files {
		switch {
		case f.from != nil: // the entry of its submodule covers it
		case f.mode == filemode.Submodule:
			list = append(list, entry{name: f.path, mode: f.mode, hash: f.hash})
		default:
			list = append(list, w.fresh[i])
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n" +
		"[remote \"origin\"]\n\turl = " + configQuote(w.place.shown) +
		"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
	head := w.commit.Hash.String() + "\n"
	refs := "# pack-refs with: sorted \n"
	full := "refs/heads/" + w.branch
	if w.branch != "" && !plumbing.IsHash(w.branch) && mirrored(full) {
		config += "[branch " + configQuote(w.branch) + "]\n\tremote = origin\n\tmerge = " + configQuote(full) + "\n"
		refs += w.commit.Hash.String() + " " + full + "\n" + w.commit.Hash.String() + " refs/remotes/origin/" +
			w.branch + "\n"
		head = "ref: " + full + "\n"
	}
	var exclude strings.Builder
	for _, k := range w.keep {
		exclude.WriteString("/" + k + "\n")
	}
	// Loose references would take precedence over ours.
	entries, err := os.ReadDir(filepath.Join(git, "refs"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.root.RemoveAll(".git/refs/" + e.Name()); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{"objects/info/alternates", []byte(filepath.Join(w.mirror, "objects") + "\n")},
		{"info/exclude", []byte(exclude.String())},
		{"config", []byte(config)},
		{"packed-refs", []byte(refs)},
		{"HEAD", []byte(head)},
	} {
		if err := writeFile(filepath.Join(git, f.name), f.content); err != nil {
			return err
		}
	}
	if err := w.writeShallow(git); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(git, conversionsFile), w.conversions()); err != nil {
		return err
	}
	return replaceFile(filepath.Join(git, "index"), encodeIndex(list)) // always, because readIndex also uses its time
}
