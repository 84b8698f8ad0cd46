package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/pep440"
)

// modules clones modules that are imported but missing, and moves cloned modules to a
// version that satisfies all requirements. early means that packages are not installed
// yet: a missing module may still come as a package, so nothing is an error.
func (j *job) modules(ctx context.Context, early bool) (changed bool, err error) {
	packages := map[string]bool{}
	if early {
		spec, err := j.spec()
		if err != nil {
			return false, err
		}
		for _, r := range spec.Requirements {
			if r, err := pep440.ParseRequirement(r); err == nil {
				packages[module.Name(r.Name)] = true
			}
		}
	}
	for range rounds {
		j.scan = j.project.Scan(j.req.Main)
		wishes := j.project.Wishes(j.scan.Modules)
		repeat := false
		lacking := j.scan.Missing
		for _, bundled := range j.scan.Bundled { // a project that has its own demands a version of it
			if len(wishes[bundled.Name]) > 0 {
				lacking = append(lacking, bundled)
			}
		}
		for _, missing := range lacking {
			if early && packages[missing.Name] {
				continue
			}
			switch err := j.download(ctx, missing, wishes[missing.Name]); {
			case err == nil:
				repeat = true
			case !early:
				return changed, err
			}
		}
		if !repeat {
			for _, m := range j.scan.Modules {
				moved, err := j.move(ctx, m, wishes[m.Name])
				if err != nil && !early {
					return changed, err
				}
				repeat = repeat || moved
			}
		}
		if !repeat {
			return changed, nil
		}
		changed = true
		if err := j.open(); err != nil {
			return changed, err
		}
	}
	return changed, fault.New(
		"install",
		fault.Exhausted,
		"the modules of this project keep requiring other versions of each other",
	)
}

// candidate is a repository that may hold a module.
type candidate struct {
	source gitsync.Source
	shown  string
}

// candidates lists the repositories that may hold a module, in order, and says why
// others cannot be asked.
func (j *job) candidates(name string) (all []candidate, failed []string) {
	for _, repo := range j.project.Metadata.Repo {
		if repo.Type != "git" {
			continue
		}
		for _, url := range repositories(repo.URL, name, j.project.Dir) {
			src, err := gitsync.ParseSource(url)
			if err != nil {
				failed = append(failed, fmt.Sprintf("%s: %s", shownURL(url), oneLine(err)))
				continue
			}
			local := filepath.IsAbs(src.URL) || strings.HasPrefix(src.URL, "file:")
			if local && j.req.NoLocal {
				failed = append(
					failed,
					src.URL+": a project may not use repositories on the disk of the server",
				)
				continue
			}
			if j.req.Reach != nil {
				var lent gitsync.Credentials
				if lent, src.Trust = j.req.Reach(src.URL); src.Credentials == (gitsync.Credentials{}) {
					src.Credentials = lent
				}
			}
			src.MaxFile = j.req.MaxFile
			all = append(all, candidate{src, src.URL})
		}
	}
	return all, failed
}

// repositories lists the URLs that a template stands for, for a module.
func repositories(template, name, projectDir string) []string {
	var urls []string
	filled := strings.NewReplacer("{}", name, "{0}", name).Replace(template)
	switch {
	case filled != template:
		urls = []string{filled}
	case strings.HasSuffix(template, "/"), strings.HasSuffix(template, ":"):
		urls = []string{template + name}
	default:
		urls = []string{template + "/" + name, template + name}
	}
	if !strings.Contains(template, ":") { // a path relative to the project
		for i, url := range urls {
			if !filepath.IsAbs(url) {
				urls[i] = filepath.Join(projectDir, url)
			}
		}
	}
	if strings.HasPrefix(urls[0], "/") || strings.HasPrefix(urls[0], "file:") {
		for _, url := range slices.Clone(urls) { // git tries this ending too
			urls = append(urls, url+".git")
		}
	}
	return urls
}

// download clones a missing module.
func (j *job) download(ctx context.Context, missing module.Missing, wishes []module.Wish) error {
	all, said := j.candidates(missing.Name)
	for _, c := range all {
		refs, err := j.refs(ctx, c.source)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			said = append(said, c.shown+": "+oneLine(err))
			continue
		}
		pick, err := j.choose(c.source, refs, missing.Name, wishes)
		if errors.Is(err, errNoVersion) && !j.refreshed[c.source.URL] { // the mirror may be old
			if refs, err = j.refresh(ctx, c.source); err == nil {
				pick, err = j.choose(c.source, refs, missing.Name, wishes)
			}
		}
		if err != nil {
			return err
		}
		dir, err := j.place(missing.Name)
		if err != nil {
			return err
		}
		if err := j.git.Clone(ctx, c.source, pick.commit, dir); err != nil {
			return err
		}
		j.note(missing.Name, pick, dir, c.shown)
		return nil
	}
	f := fault.New(
		"install",
		fault.NotFound,
		fmt.Sprintf("the module %s, imported at %s, cannot be found", missing.Name, missing.At)+tried(said),
	)
	if len(j.project.Metadata.Repo) == 0 {
		return f.Hint("if it is a Python package, add " + module.Distribution(missing.Name) + " to requirements.txt; " +
			"if it is a Git repository, name it under repo in project.yml")
	}
	return f.Hint(
		"if it is a Python package, add " + module.Distribution(
			missing.Name,
		) + " to requirements.txt; else check repo in project.yml",
	)
}

func tried(said []string) string {
	if len(said) == 0 {
		return ""
	}
	return "; tried\n  " + strings.Join(said, "\n  ")
}

// place returns the folder for a new module. The compiler must look for modules there,
// and it must lie inside Root even if all links are followed.
func (j *job) place(name string) (string, error) {
	base := j.project.DownloadPath()
	if !slices.Contains(j.project.ModulePath, base) {
		return "", fault.New("install", fault.Invalid, "modules would be downloaded to "+base+", where the "+
			"compiler does not look for them").
			Hint("set downloadpath in project.yml, and list it under modulepath too")
	}
	if j.req.Root != "" && !module.Below(j.req.Root, base) {
		return "", fault.New("install", fault.Forbidden, "downloadpath leads out of the project: "+base).
			Hint("set it to a folder inside the project, such as libs")
	}
	return filepath.Join(base, name), nil
}

// move switches a module in the download folder to another version: one that satisfies
// all wishes, or with Update the newest such version.
func (j *job) move(ctx context.Context, m *module.Module, wishes []module.Wish) (bool, error) {
	broken := module.Broken(wishes, m.Version)
	ours := m.Generation == 1 && filepath.Dir(m.Path) == j.project.DownloadPath() &&
		isDir(filepath.Join(m.Path, ".git")) &&
		(j.req.Root == "" || module.Below(j.req.Root, m.Path)) // a link may lead to somebody's working copy
	if !ours || !j.req.Update && len(broken) == 0 || j.wasMoved(m.Name) > rounds/10 {
		return false, nil
	}
	all, _ := j.candidates(m.Name)
	for _, c := range all {
		refs, err := j.refresh(ctx, c.source)
		if err != nil {
			continue
		}
		pick, err := j.choose(c.source, refs, m.Name, wishes)
		if err != nil {
			return false, err
		}
		if pick.version == m.Version && len(broken) == 0 {
			return false, nil
		}
		before := headOf(m.Path)
		if err := j.git.Switch(ctx, c.source, pick.commit, m.Path); err != nil {
			return false, err
		}
		if headOf(m.Path) == before {
			return false, nil
		}
		j.note(m.Name, pick, m.Path, c.shown)
		return true, nil
	}
	return false, nil
}

func (j *job) wasMoved(name string) (times int) {
	for _, d := range j.result.Downloaded {
		if d.Name == name {
			times++
		}
	}
	return times
}

func headOf(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, ".git", "HEAD"))
	return string(text)
}

func (j *job) note(name string, p pick, dir, url string) {
	for _, w := range p.warnings {
		j.say("Warning: %s", w)
	}
	j.say("Module %s is at %s, from %s", name, p.shown(), url)
	j.result.Commands = append(j.result.Commands, "git clone --branch "+p.ref+" "+url+" "+dir)
	j.result.Downloaded = append(j.result.Downloaded, Download{Name: name, Version: p.shown(), Dir: dir, URL: url})
}

// refs returns the versions of a repository. With Update or Refresh it fetches them
// first; with Refresh alone, an unreachable repository is not an error.
func (j *job) refs(ctx context.Context, src gitsync.Source) (gitsync.Refs, error) {
	if !j.req.Update && !j.req.Refresh {
		return j.git.Refs(ctx, src, false)
	}
	refs, err := j.refresh(ctx, src)
	if fault.Is(err, fault.Unavailable) && !j.req.Update {
		if known, mirrorErr := j.git.Refs(ctx, src, false); mirrorErr == nil {
			j.say("Warning: %s; the last fetch of it is used", oneLine(err))
			return known, nil
		}
	}
	return refs, err
}

// refresh fetches a repository, but only once in a job.
func (j *job) refresh(ctx context.Context, src gitsync.Source) (gitsync.Refs, error) {
	refs, err := j.git.Refs(ctx, src, !j.refreshed[src.URL])
	if err == nil {
		j.refreshed[src.URL] = true
	}
	return refs, err
}
