package archive

import (
	"path"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/fault"
)

// kind is what an entry is.
type kind int

const (
	file kind = iota
	folder
	link
)

// entry is an entry that has passed the rules.
type entry struct {
	path    string // clean, relative, begins with the name of the resource
	kind    kind
	program bool   // a file that may be run
	target  string // of a link
}

// rules checks entries in their order.
type rules struct {
	limits Limits
	name   string
	seen   map[string]kind // by path; also the folders that no entry names
	named  map[string]bool // paths that an entry named
	count  int
	bytes  int64
}

func newRules(l Limits, name string) (*rules, error) {
	if name == "" || name == "." || name == ".." || len(name) > maxPart || strings.ContainsAny(name, "/\\\x00") ||
		!utf8.ValidString(name) {
		return nil, invalid("%s cannot be the name of an archive", shown(name))
	}
	return &rules{limits: l, name: name, seen: map[string]kind{}, named: map[string]bool{}}, nil
}

// admit checks an entry and completes it. skip is true for one that says nothing, as the folder "./".
func (r *rules) admit(raw string, e entry) (_ entry, skip bool, err error) {
	if r.count++; r.count > r.limits.Entries {
		return e, false, fault.New("archive.Check", fault.Exhausted, "the archive has too many entries").
			Hint("put large sets of files where the machines can download them")
	}
	if e.path, err = r.clean(raw); err != nil {
		return e, false, err
	}
	if e.path == "." && e.kind == folder {
		return e, true, nil
	}
	top, _, below := strings.Cut(e.path, "/")
	if top != r.name || !below && e.kind != folder {
		return e, false, invalid("the archive has %s, which is not in the folder %s", shown(raw), shown(r.name)).
			Hint("an archive has one folder at its top, with the name of the resource, and everything else in it")
	}
	if was, ok := r.seen[e.path]; ok && (r.named[e.path] || was != folder || e.kind != folder) {
		return e, false, invalid("the archive has %s more than once", shown(raw))
	}
	for up := path.Dir(e.path); up != "."; up = path.Dir(up) {
		if was, ok := r.seen[up]; ok && was != folder {
			return e, false, invalid("the archive has %s as a file or link, and %s in it", shown(up), shown(raw))
		}
		r.seen[up] = folder
	}
	r.seen[e.path], r.named[e.path] = e.kind, true
	if e.kind == link {
		if err := r.stays(e); err != nil {
			return e, false, err
		}
	}
	return e, false, nil
}

// clean returns a path in its shortest form, if it is a relative one that goes down only.
func (r *rules) clean(raw string) (string, error) {
	name := strings.TrimSuffix(raw, "/")
	if len(raw) > maxPath || !utf8.ValidString(raw) || strings.ContainsAny(raw, "\x00\\") {
		return "", invalid(
			"the archive has the path %s, which is too long or has characters that cannot be used",
			shown(raw),
		).
			Hint(
				"use shorter paths in UTF-8, without backslashes",
			)
	}
	if name == "" || strings.HasPrefix(name, "/") {
		return "", invalid("the archive has the absolute path %s", shown(raw))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", invalid("the archive has the path %s, which leads out of its folder", shown(raw))
		}
		if len(part) > maxPart {
			return "", invalid("the archive has the path %s with a name that is too long", shown(raw))
		}
	}
	return path.Clean(name), nil
}

// stays checks that a link leads to nothing outside of the top folder. A target may begin with "..", which the folder
// of the link resolves, and that folder is none behind a link; after that it only goes down, through links for which
// the same holds.
func (r *rules) stays(e entry) error {
	out := invalid("the archive has the link %s to %s, which leads out of its folder", shown(e.path), shown(e.target)).
		Hint("use relative links within the folder, or copy the file")
	if e.target == "" || len(e.target) > maxPath || strings.HasPrefix(e.target, "/") || !utf8.ValidString(e.target) ||
		strings.ContainsAny(e.target, "\x00\\") {
		return out
	}
	down := false
	for part := range strings.SplitSeq(e.target, "/") {
		switch part {
		case "..":
			if down {
				return out
			}
		case "", ".":
		default:
			down = true
		}
	}
	led := path.Join(path.Dir(e.path), e.target)
	if led != r.name && !strings.HasPrefix(led, r.name+"/") {
		return out
	}
	return nil
}

// spend counts bytes of content.
func (r *rules) spend(n int) error {
	if r.bytes += int64(n); r.bytes > r.limits.Unpacked {
		return fault.New("archive.Check", fault.Exhausted, "the archive is too large when it is unpacked").
			Hint("put large files where the machines can download them")
	}
	return nil
}

// complete checks what can be said at the end only.
func (r *rules) complete() error {
	if _, ok := r.seen[r.name]; !ok {
		return invalid(
			"the archive is empty",
		).Hint(
			"an archive has one folder at its top, with the name of the resource",
		)
	}
	return nil
}
