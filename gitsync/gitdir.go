package gitsync

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// The .git folder of a checkout holds little: the index, which is also how the
// next checkout knows what changed; where the commit came from; and no
// objects, for it borrows those of the mirror. People can look around with
// git there. What they change there is lost at the next checkout.

// readIndex gives the entries of an index and when it was written; nothing
// when it cannot be read: then files are compared by content.
func readIndex(path string) (map[string]*index.Entry, time.Time) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, time.Time{}
	}
	idx := &index.Index{}
	if err := index.NewDecoder(bytes.NewReader(text)).Decode(idx); err != nil {
		return nil, time.Time{}
	}
	entries := make(map[string]*index.Entry, len(idx.Entries))
	for _, e := range idx.Entries {
		if e.Stage == 0 { // no conflict
			entries[e.Name] = e
		}
	}
	return entries, info.ModTime()
}

// untouched reports whether a file is still the one that an entry was made
// of. A file that changed in the very tick of the clock in which the index was
// written looks untouched, so those are not believed.
func untouched(old *index.Entry, info fs.FileInfo, indexWritten time.Time) bool {
	now := entryOf(info)
	return old.Size == now.Size && old.Inode == now.Inode && old.Dev == now.Dev &&
		old.ModifiedAt.Equal(now.ModifiedAt) && old.CreatedAt.Equal(now.CreatedAt) &&
		now.ModifiedAt.Before(indexWritten) && now.CreatedAt.Before(indexWritten)
}

func (w *worktree) writeGitDir() error {
	git := filepath.Join(w.dir, ".git")
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := w.root.MkdirAll(".git/"+dir, 0o755); err != nil {
			return err
		}
	}
	var list bytes.Buffer
	idx := &index.Index{Version: 2}
	for _, f := range w.content.files {
		entry := w.fresh[f.path]
		if f.mode == filemode.Submodule {
			entry = &index.Entry{Name: f.path, Mode: f.mode, Hash: f.hash}
		}
		idx.Entries = append(idx.Entries, entry)
	}
	if err := index.NewEncoder(&list).Encode(idx); err != nil {
		return err
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n" +
		"[remote \"origin\"]\n\turl = " + configQuote(w.place.shown) + "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
	head := w.commit.Hash.String() + "\n"
	refs := "# pack-refs with: sorted \n"
	full := "refs/heads/" + w.branch
	if w.branch != "" && !plumbing.IsHash(w.branch) && mirrored(full) {
		config += "[branch " + configQuote(w.branch) + "]\n\tremote = origin\n\tmerge = " + configQuote(full) + "\n"
		refs += w.commit.Hash.String() + " " + full + "\n" + w.commit.Hash.String() + " refs/remotes/origin/" + w.branch + "\n"
		head = "ref: " + full + "\n"
	}
	var exclude strings.Builder
	for _, k := range w.keep {
		exclude.WriteString("/" + k + "\n")
	}
	// Loose references would come before ours.
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
	return replaceFile(filepath.Join(git, "index"), list.Bytes()) // always: its time counts, too
}
