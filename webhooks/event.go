package webhooks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Event is what a webhook reports, whatever forge sent it.
type Event = intent.HookEvent

// Pull is a pull or merge request of an event.
type Pull = intent.Pull

// Bounds on what is kept of an event. Texts are counted in characters, URLs and refs in bytes.
const (
	maxText  = 300
	maxURL   = 2000
	maxURLs  = 12
	maxRef   = 1000
	maxPaths = 2000
	maxMore  = 100 // refs after the first
)

// finish checks that an event is complete, and bounds what a stranger wrote.
// urlField is the field of the payload that should have named the repository.
func finish(e Event, urlField string) (Event, error) {
	if e.Kind == "" {
		e.Kind = intent.HookOther
	}
	e.Name, e.Repository = printable(e.Name, 60), printable(e.Repository, 200)
	e.Sender, e.Subject = printable(e.Sender, 100), printable(e.Subject, maxText)
	e.DefaultBranch = printable(strings.TrimPrefix(e.DefaultBranch, branches), maxRef)
	e.URLs = addresses(e.URLs)
	for _, commit := range []*string{&e.Before, &e.Commit} {
		*commit = commitOf(*commit)
	}
	if len(e.Paths) > maxPaths {
		e.Paths = nil
	}
	e.More = e.More[:min(len(e.More), maxMore)]
	switch e.Kind {
	case intent.HookPush, intent.HookTag:
		if len(e.URLs) == 0 {
			return e, missing("repository", urlField)
		}
		if e.Ref == "" {
			return e, errors.New("it names no branch: ref is missing")
		}
		if err := checkRef(e.Ref); err != nil {
			return e, err
		}
	case intent.HookPull:
		if len(e.URLs) == 0 {
			return e, missing("repository", urlField)
		}
		if e.Pull == nil || e.Pull.Number <= 0 {
			return e, errors.New("it does not number its pull request")
		}
		p := *e.Pull
		p.Title, p.Author = printable(p.Title, maxText), printable(p.Author, 100)
		p.Association, p.URL = printable(p.Association, 60), address(p.URL)
		p.Head, p.Base = sideOf(p.Head), sideOf(p.Base)
		e.Pull = &p
	}
	return e, nil
}

// missing is the error for a payload without a field.
func missing(what, field string) error {
	return fmt.Errorf("it names no %s: %s is missing", what, field)
}

// sideOf drops from a side of a pull request what is not well-formed.
func sideOf(s intent.PullSide) intent.PullSide {
	s.Ref = strings.TrimPrefix(s.Ref, branches)
	if checkRef(branches+s.Ref) != nil {
		s.Ref = ""
	}
	s.Commit, s.URL = commitOf(s.Commit), address(s.URL)
	return s
}

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

// kindOf returns whether a push to this ref is one to a branch or to a tag.
func kindOf(ref string) intent.HookKind {
	if strings.HasPrefix(ref, tags) {
		return intent.HookTag
	}
	return intent.HookPush
}

// checkRef returns an error for a text that Git would not accept as the full name of a ref.
func checkRef(ref string) error {
	bad := len(ref) > maxRef || !strings.HasPrefix(ref, "refs/") ||
		strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".") || strings.HasSuffix(ref, ".lock") ||
		strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.Contains(ref, "@{") ||
		strings.Contains(ref, "/.") ||
		strings.ContainsAny(ref, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(ref, func(r rune) bool { return r < 0x20 })
	if bad {
		return fmt.Errorf("%q is not the full name of a ref, such as refs/heads/main", printable(ref, 80))
	}
	return nil
}

// commitOf returns a full commit hash as it is, and an empty text for everything else. Zeros, which stand for no
// commit, are no hash.
func commitOf(s string) string {
	if len(s) != 40 && len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" || zeros(s) {
		return ""
	}
	return s
}

// zeros reports whether a hash is the one that stands for no commit.
func zeros(commit string) bool { return commit != "" && strings.Trim(commit, "0") == "" }

// addresses returns the first few different URLs that are usable.
func addresses(urls []string) []string {
	var given []string
	for _, u := range urls {
		if u = address(u); u != "" && len(given) < maxURLs && !slices.Contains(given, u) {
			given = append(given, u)
		}
	}
	return given
}

// address returns a URL as it is, or an empty text when it is too long or has control characters.
func address(u string) string {
	if len(u) > maxURL || strings.ContainsFunc(u, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(u), "")
}

// pushedCommit is a commit in a payload, with the paths that it changed.
type pushedCommit struct {
	ID       string
	Message  string
	Added    []string
	Modified []string
	Removed  []string
}

// changedPaths returns the paths that the commits of a push changed. It returns
// nil when these may not be all of them: forges list only some commits of a big
// push, and no paths of a merge.
func changedPaths(commits []pushedCommit, after string, total int) []string {
	if len(commits) == 0 || len(commits) != total || commits[len(commits)-1].ID != after {
		return nil
	}
	seen := map[string]bool{}
	paths := []string{}
	for _, c := range commits {
		if len(c.Added)+len(c.Modified)+len(c.Removed) == 0 {
			return nil
		}
		for _, list := range [][]string{c.Added, c.Modified, c.Removed} {
			for _, p := range list {
				if len(p) > 4095 || len(paths) >= maxPaths {
					return nil
				}
				if !seen[p] {
					seen[p] = true
					paths = append(paths, p)
				}
			}
		}
	}
	return paths
}

// printable returns the first line of a stranger's text, cut to limit characters, without control characters.
func printable(s string, limit int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "…"
	}
	return strings.TrimSpace(s)
}
