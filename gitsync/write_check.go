package gitsync

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
)

// Bounds on what is committed at once.
const (
	maxWriteFiles   = 500
	maxWriteBytes   = 16 << 20
	maxWriteMessage = 64 << 10
	maxIdentity     = 250
)

// checked returns a Write that is safe to commit, with a clean message and clean names. It knows nothing of the
// repository: what is in the way of a file there is found by draft.
func (s *Syncer) checked(w Write) (Write, error) {
	refuse := func(format string, args ...any) (Write, error) {
		return w, fault.New(opWrite, fault.Invalid, fmt.Sprintf(format, args...)).Hint("change what is to be committed")
	}
	if w.Base != "" && !plumbing.IsHash(w.Base) {
		return refuse("%q is not a full commit hash", printable(w.Base))
	}
	if w.NewBranch != "" {
		name := plumbing.NewBranchReferenceName(w.NewBranch)
		if !mirrored(name.String()) || CheckBranch(w.NewBranch) != nil || plumbing.IsHash(w.NewBranch) {
			return refuse("%q cannot be the name of a branch", printable(w.NewBranch))
		}
	}
	if len(w.Files) == 0 || len(w.Files) > maxWriteFiles {
		return refuse("a commit changes 1 to %d files, not %d", maxWriteFiles, len(w.Files))
	}
	w.Files = slices.Clone(w.Files)
	size := 0
	for _, f := range w.Files {
		if err := s.checkPath(opWrite, "committed", f.Path); err != nil {
			return w, err
		}
		size += len(f.Content)
	}
	if size > maxWriteBytes {
		return refuse("the files have %d MiB; a commit takes %d", size>>20, maxWriteBytes>>20)
	}
	// In this order a folder comes right before what is in it.
	slices.SortFunc(w.Files, func(a, b FileChange) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	for i := 1; i < len(w.Files); i++ {
		before, f := w.Files[i-1].Path, w.Files[i].Path
		if f == before {
			return refuse("%q is there twice", printable(f))
		}
		if strings.HasPrefix(f, before+"/") {
			return refuse("%q cannot be a file and the folder of %q", printable(before), printable(f))
		}
	}
	message, err := cleanMessage(w.Message)
	if err != nil {
		return refuse("%v", err)
	}
	w.Message = message
	if w.Committer == (Identity{}) {
		w.Committer = Ordain
	}
	for _, who := range []*Identity{&w.Author, &w.Committer} {
		if *who = who.clean(); who.Name == "" {
			return refuse("the commit names no author")
		}
	}
	return w, nil
}

// checkPath refuses a path that is not that of a plain file inside of the repository.
func (s *Syncer) checkPath(op, verb, file string) error {
	refuse := func(why string) error {
		return fault.New(op, fault.Invalid, fmt.Sprintf("%q cannot be %s: %s", printable(file), verb, why)).
			Hint("give the path of a file in the repository, such as clusters/web.yaml")
	}
	names := strings.Split(file, "/")
	switch {
	case file == "":
		return refuse("it is empty")
	case len(file) > maxPath:
		return refuse("it is too long")
	case !utf8.ValidString(file):
		return refuse("it is not UTF-8")
	case strings.ContainsFunc(file, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' }):
		return refuse("it holds a control character or a backslash")
	case path.IsAbs(file):
		return refuse("it is absolute")
	case len(names) > maxDepth:
		return refuse("it is nested too deeply")
	}
	for i, name := range names {
		switch {
		case name == "" || name == "." || name == "..":
			return refuse("it is not a plain path")
		case isDotGit(name) || strings.EqualFold(name, ".gitmodules"):
			return refuse("the name " + printable(name) + " belongs to Git itself")
		case len(name) > maxName:
			return refuse("a name is too long")
		case i == 0 && s.kept(name):
			return refuse("the compiler's virtual environment needs the name " + printable(name))
		}
	}
	return nil
}

// cleanMessage returns the message as Git stores it.
func cleanMessage(text string) (string, error) {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "�")
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text))
	switch {
	case text == "":
		return "", fmt.Errorf("the commit has no message")
	case len(text) > maxWriteMessage:
		return "", fmt.Errorf("the message of the commit has more than %d KiB", maxWriteMessage>>10)
	}
	return text + "\n", nil
}

// clean returns an identity that fits into the header of a commit, which a line break or an angle bracket would end.
func (i Identity) clean() Identity {
	fit := func(text string) string {
		text = strings.Map(func(r rune) rune {
			if r < 0x20 || r == 0x7f || r == '<' || r == '>' || r == utf8.RuneError {
				return ' '
			}
			return r
		}, text)
		if len(text) > maxIdentity {
			text = strings.ToValidUTF8(text[:maxIdentity], "")
		}
		return string(bytes.Join(bytes.Fields([]byte(text)), []byte(" ")))
	}
	i.Name, i.Email = fit(i.Name), strings.ReplaceAll(fit(i.Email), " ", "")
	return i
}
