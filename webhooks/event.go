package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Event is what a webhook tells, whatever forge it came from.
type Event = intent.HookEvent

// Pull is a pull or merge request of an event.
type Pull = intent.Pull

// Bounds on what is kept of an event.
const (
	maxText  = 300
	maxURL   = 2000
	maxURLs  = 12
	maxRef   = 1000
	maxPaths = 2000
	maxMore  = 100 // refs besides the first
)

// finish checks what a payload must have and keeps a stranger's texts short.
// urlField names where the repository was looked for.
func finish(e Event, urlField string) (Event, error) {
	if e.Kind == "" {
		e.Kind = intent.HookOther
	}
	e.Name, e.Repository = printable(e.Name, 60), printable(e.Repository, 200)
	e.Sender, e.Subject, e.DefaultBranch = printable(
		e.Sender,
		100,
	), printable(
		e.Subject,
		maxText,
	), printable(
		strings.TrimPrefix(e.DefaultBranch, branches),
		maxRef,
	)
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
		p.Title, p.Author, p.Association, p.URL = printable(
			p.Title,
			maxText,
		), printable(
			p.Author,
			100,
		), printable(
			p.Association,
			60,
		), address(
			p.URL,
		)
		p.Head, p.Base = sideOf(p.Head), sideOf(p.Base)
		e.Pull = &p
	}
	return e, nil
}

func missing(what, field string) error {
	return fmt.Errorf("it names no %s: %s is missing", what, field)
}

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

// kindOf tells pushes to branches from those to tags.
func kindOf(ref string) intent.HookKind {
	if strings.HasPrefix(ref, tags) {
		return intent.HookTag
	}
	return intent.HookPush
}

// checkRef refuses what Git would not take for the full name of a ref.
func checkRef(ref string) error {
	bad := len(ref) > maxRef || !strings.HasPrefix(ref, "refs/") || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".") || strings.HasSuffix(ref, ".lock") ||
		strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.Contains(ref, "@{") ||
		strings.Contains(ref, "/.") ||
		strings.ContainsAny(ref, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(ref, func(r rune) bool { return r < 0x20 })
	if bad {
		return fmt.Errorf("%q is not the full name of a ref, such as refs/heads/main", printable(ref, 80))
	}
	return nil
}

// commitOf keeps the name of a commit, and nothing else; empty for zeros, which stand for none.
func commitOf(s string) string {
	if len(s) != 40 && len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" || zeros(s) {
		return ""
	}
	return s
}

// zeros reports whether a commit is the one that stands for none.
func zeros(commit string) bool { return commit != "" && strings.Trim(commit, "0") == "" }

func addresses(urls []string) []string {
	var given []string
	for _, u := range urls {
		if u = address(u); u != "" && len(given) < maxURLs && !slices.Contains(given, u) {
			given = append(given, u)
		}
	}
	return given
}

func address(u string) string {
	if len(u) > maxURL || strings.ContainsFunc(u, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(u), "")
}

// listed is a commit of a payload with the paths that it changed.
type listed struct {
	ID       string
	Message  string
	Added    []string
	Modified []string
	Removed  []string
}

// told gives the paths that commits changed; nil when these cannot be all: a
// forge lists only some commits of a big push, and no paths of a merge.
func told(commits []listed, after string, total int) []string {
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

// decode reads JSON and says where it is wrong, without quoting it.
func decode(body []byte, into any) error {
	doc := body
	if picked, ok := pick(body, wantedBy(reflect.TypeOf(into))); ok {
		doc = picked
	}
	err := json.Unmarshal(doc, into)
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case len(body) == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &typed):
		return fmt.Errorf("%s cannot be a JSON %s", printable(typed.Field, 60), typed.Value)
	}
	return errors.New("it is not JSON")
}

// printable keeps a stranger's text short and on one line.
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
