// Package push turns what people send about a compile on their own machine into a version to store. It decides and
// checks; it stores nothing.
//
//	inmanta export ──▶ Export    resources, modules, sets      ┐
//	                                                           ├──▶ Version: intent.NewVersion, and the files it needs
//	ordain export  ──▶ Document  what the compiler wrote       ┘
//
// Nothing in it is trusted: attributes are written again in their canonical form and hashed here, ids and requirements
// are parsed, every resource that is required must be there, and code may only lie where modules have theirs. The store
// refuses circles, ids that appear twice, attributes that are too large, and more resources than a quota allows.
package push

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/pep440"
)

const (
	op = "push"
	// maxWords is the length in bytes of the longest text about a compile, maxName that of the longest name.
	maxWords, maxName = 2000, 500
	// maxFiles and maxLines bound the files of code and the requirements of one version.
	maxFiles, maxLines = 50_000, 10_000
)

// Version is a checked version.
type Version struct {
	intent.NewVersion
	// Files are the hex SHA-1 of the files of code that the store must have; sorted.
	Files []string
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(op, fault.Invalid, fmt.Sprintf(format, args...))
}

// checkPushed bounds and cleans what a client says of itself.
func checkPushed(p intent.Pushed) (intent.Pushed, error) {
	for name, text := range map[string]*string{
		"user": &p.User, "host": &p.Host, "client": &p.Client, "commit": &p.Commit, "branch": &p.Branch,
		"message": &p.Message,
	} {
		limit := maxName
		if name == "message" {
			limit = maxWords
		}
		if len(*text) > limit {
			return p, invalid("the %s of a pushed version may have at most %d bytes", name, limit)
		}
		*text = plain(*text)
	}
	if len(p.Constraints) > 1<<20 {
		return p, invalid("the constraints of a pushed version are larger than 1 MiB")
	}
	return p, checkLines("constraint", p.ConstraintLines())
}

// plain removes what does not belong into one line of text.
func plain(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text))
}

// checkLines refuses requirements that would read files of the server, or are no requirements.
func checkLines(what string, lines []string) error {
	if len(lines) > maxLines {
		return invalid("there are more than %d %ss", maxLines, what)
	}
	for _, text := range lines {
		if len(text) > maxWords || strings.ContainsAny(text, "\r\n\x00") || !utf8.ValidString(text) {
			return invalid("a %s must be one line of at most %d bytes", what, maxWords)
		}
		line, err := pep440.ParseLine(text, false)
		if err == nil && line.Include != "" {
			err = fmt.Errorf("it includes a file")
		}
		if err != nil {
			return invalid("the %s %.100q cannot be installed: %v", what, text, err)
		}
	}
	return nil
}

func checkPip(p intent.PipConfig) error {
	if len(p.ExtraIndexURL) > 100 {
		return invalid("pip_config has more than 100 package indexes")
	}
	for _, index := range append([]string{p.IndexURL}, p.ExtraIndexURL...) {
		if index == "" {
			continue
		}
		if err := pep440.CheckAddress(index, false); err != nil || len(index) > maxWords {
			return invalid("a package index of pip_config cannot be used: %v", err)
		}
	}
	return nil
}

// checkSource refuses files of code that would lie outside of the folder for code.
func checkSource(s intent.SourceFile) error {
	if len(s.Path) > maxName || !utf8.ValidString(s.Path) || strings.ContainsAny(s.Path, "\\\x00\n") ||
		path.IsAbs(s.Path) || path.Clean(s.Path) != s.Path || s.Path == "." || s.Path == ".." ||
		strings.HasPrefix(s.Path, "../") {
		return invalid("%.100q is no path for a file of code", s.Path)
	}
	if !isHash(s.Hash) {
		return invalid("the file %s has no SHA-1 but %.60q", s.Path, s.Hash)
	}
	if len(s.Module) > maxName || strings.ContainsFunc(s.Module, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune(`/\;'"()`, r)
	}) {
		return invalid("%.100q is no name of a Python module", s.Module)
	}
	return nil
}

func isHash(text string) bool {
	return len(text) == 40 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// checkCode checks the code of all types, and lists its files.
func checkCode(code []intent.ResourceCode) ([]string, error) {
	files := map[string]bool{}
	seen := map[string]bool{}
	for _, c := range code {
		if seen[c.Type] || !strings.Contains(c.Type, "::") || len(c.Type) > maxName {
			return nil, invalid("the code of %.100q is there twice, or it is no type", c.Type)
		}
		seen[c.Type] = true
		for _, s := range c.Sources {
			if !files[s.Hash+s.Path] {
				if err := checkSource(s); err != nil {
					return nil, err
				}
				files[s.Hash+s.Path] = true
			}
		}
		for what, lines := range map[string][]string{"requirement": c.Requirements, "constraint": c.Constraints} {
			if err := checkLines(what, lines); err != nil {
				return nil, err
			}
		}
		for _, m := range c.Modules {
			if err := checkModule(strings.TrimPrefix(m, pluginsPackage+".")); err != nil {
				return nil, err
			}
		}
	}
	if len(files) > maxFiles {
		return nil, invalid("there are more than %d files of code", maxFiles)
	}
	var hashes []string
	for key := range files {
		hashes = append(hashes, key[:40])
	}
	slices.Sort(hashes)
	return slices.Compact(hashes), nil
}

// checkClosed refuses requirements of resources that are not there. Those of a partial export are checked when it is
// merged (package partial): it may not require what it does not contain either.
func checkClosed(v intent.NewVersion) error {
	if v.Partial != nil {
		return nil
	}
	known := make(map[intent.ResourceID]bool, len(v.Resources))
	for i := range v.Resources {
		known[v.Resources[i].ID] = true
	}
	for i := range v.Resources {
		for _, id := range v.Resources[i].Requires {
			if !known[id] {
				return invalid("the resource %s requires %s, which is not part of the version",
					v.Resources[i].ID, id)
			}
		}
	}
	return nil
}
