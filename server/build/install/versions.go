package install

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/pep440"
	"ordain.dev/ordain/internal/python/venv"
)

// errNoVersion means that a repository has no version that is allowed.
var errNoVersion = errors.New("no version is allowed")

// pick is the version of a module that was chosen.
type pick struct {
	ref      string // tag or branch
	commit   string
	version  string // of module.yml
	branch   bool
	warnings []string
}

func (p pick) shown() string {
	if p.branch {
		return fmt.Sprintf("%s (branch %s)", p.version, p.ref)
	}
	return p.ref
}

type tagged struct {
	tag     string
	version pep440.Version
}

// choose picks the newest tag that the install mode and all wishes allow. Without such
// a tag it picks the default branch, with a warning, if that satisfies the wishes.
func (j *job) choose(src gitsync.Source, refs gitsync.Refs, name string, wishes []module.Wish) (pick, error) {
	mode := j.project.Metadata.InstallMode
	var tags []tagged
	for tag := range refs.Tags {
		if v, err := pep440.Parse(tag); err == nil {
			tags = append(tags, tagged{tag, v})
		}
	}
	slices.SortFunc(tags, func(a, b tagged) int {
		if c := pep440.Compare(b.version, a.version); c != 0 {
			return c
		}
		return strings.Compare(a.tag, b.tag)
	})
	if mode != "master" {
		for _, t := range tags {
			if !allowed(wishes, t.version, mode == "prerelease") {
				continue
			}
			meta, err := j.metadata(src, refs.Tags[t.tag])
			if err != nil || !compiles(meta.CompilerVersion) {
				continue // the tag is older than module.yml, or needs a later compiler
			}
			return pick{ref: t.tag, commit: refs.Tags[t.tag], version: meta.Version}, nil
		}
	}
	none := fault.Wrap("install", fault.Conflict, errNoVersion).Say(noVersion(name, src.URL, tags, wishes)).
		Hint("change a constraint, or push a tag with such a version")
	if refs.Head == "" {
		return pick{}, none
	}
	meta, err := j.metadata(src, refs.Head)
	if err != nil {
		return pick{}, fault.Wrap("install", fault.Invalid, err).Say(src.URL + " holds no module that can be used").
			Hint("modules with a setup.cfg are Python packages: add " + module.Distribution(name) + " to " +
				"requirements.txt, or install it with pip install -e")
	}
	p := pick{ref: refs.Main, commit: refs.Head, version: meta.Version, branch: true}
	if len(module.Broken(wishes, meta.Version)) > 0 {
		return pick{}, none
	}
	if mode != "master" {
		p.warnings = []string{
			fmt.Sprintf("no tag of %s names a version of the module %s that is allowed; its branch %s is taken",
				src.URL, name, refs.Main),
		}
	}
	return p, nil
}

func allowed(wishes []module.Wish, v pep440.Version, pre bool) bool {
	for _, w := range wishes {
		if !w.Versions.Contains(v, pre) {
			return false
		}
	}
	return pre || len(wishes) > 0 || !v.Prerelease()
}

func noVersion(name, url string, tags []tagged, wishes []module.Wish) string {
	var wanted, there []string
	for _, w := range wishes {
		wanted = append(wanted, fmt.Sprintf("%s wants %s", w.By, w.Versions))
	}
	for _, t := range tags[:min(len(tags), 8)] {
		there = append(there, t.tag)
	}
	if len(tags) > 8 {
		there = append(there, "…")
	}
	if len(there) == 0 {
		there = []string{"no tags of versions"}
	}
	text := fmt.Sprintf("no version of the module %s is allowed; %s has %s", name, url, strings.Join(there, ", "))
	if len(wanted) > 0 {
		text += "; " + strings.Join(wanted, "; ")
	}
	return text
}

type moduleYML struct {
	Version         string `yaml:"version"`
	CompilerVersion string `yaml:"compiler_version"`
}

func (j *job) metadata(src gitsync.Source, commit string) (moduleYML, error) {
	var meta moduleYML
	text, err := j.git.ReadFile(src, commit, "module.yml")
	if err != nil {
		return meta, err
	}
	if err := yaml.Unmarshal(text, &meta); err != nil {
		return meta, err
	}
	if meta.Version == "" {
		return meta, errors.New("its module.yml names no version")
	}
	return meta, nil
}

// compiles reports whether a module that needs this version of the compiler can be used.
func compiles(compiler string) bool {
	wanted, err := pep440.Parse(compiler)
	if err != nil {
		return true
	}
	ours, err := pep440.Parse(venv.CoreVersion)
	return err == nil && pep440.Compare(wanted, ours) <= 0
}

// oneLine returns the first line of an error, without its advice.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// shownURL removes the credentials from a URL, even from one that does not parse.
func shownURL(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		u.User = nil
		return u.String()
	}
	if _, rest, ok := strings.Cut(raw, "@"); ok {
		return rest
	}
	return raw
}
