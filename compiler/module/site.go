package module

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// sitePackages lists the package folders of a virtual environment.
func sitePackages(env string) []string {
	found, _ := filepath.Glob(filepath.Join(env, "lib", "python3.*", "site-packages"))
	minor := func(path string) int {
		_, version, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "python3.")
		n, _ := strconv.Atoi(version)
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return minor(b) - minor(a) })
	return found
}

// site finds the package inmanta_plugins.<name> as Python does. Installers of
// editable packages say in one of three ways where a package lies:
//
//	site-packages/x.pth                    each line is one more folder to look in
//	site-packages/__editable___…_finder.py has a table from package to folder
//	x.dist-info/direct_url.json            names the folder that was installed
type site struct {
	dirs []string
	once sync.Once
	// roots are more folders like inmanta_plugins, in the order in which Python looks;
	// packages holds the folders of single packages.
	roots    []string
	packages map[string]string
	// versions holds the versions of the installed packages, by normalised name.
	versions map[string]string
}

// find returns the folder of a package, or an empty path.
func (s *site) find(name string) string {
	for _, dir := range s.dirs {
		if path := filepath.Join(dir, "inmanta_plugins", name); isDir(path) {
			return path
		}
	}
	s.once.Do(s.read)
	for _, root := range s.roots {
		if path := filepath.Join(root, name); isDir(path) {
			return path
		}
	}
	return s.packages[name]
}

// version returns the version of a distribution; empty: it is not installed.
func (s *site) version(dist string) string {
	s.once.Do(s.read)
	return s.versions[normal(dist)]
}

func normal(dist string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(dist))
}

func (s *site) read() {
	s.packages, s.versions = map[string]string{}, map[string]string{}
	var fromFinders, fromURLs []string
	for _, dir := range s.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case strings.HasSuffix(e.Name(), ".pth"):
				s.roots = append(s.roots, pathFile(dir, path)...)
			case strings.HasPrefix(e.Name(), "__editable__") && strings.HasSuffix(e.Name(), "_finder.py"):
				fromFinders = append(fromFinders, s.finder(path)...)
			case strings.HasSuffix(e.Name(), ".dist-info"):
				name, version, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".dist-info"), "-")
				if _, ok := s.versions[normal(name)]; !ok {
					s.versions[normal(name)] = version
				}
				if root := directURL(path); root != "" {
					fromURLs = append(fromURLs, filepath.Join(root, "inmanta_plugins"))
				}
			}
		}
	}
	s.roots = append(append(s.roots, fromFinders...), fromURLs...)
}

// pathFile reads a .pth file. It skips lines that Python would execute.
func pathFile(dir, path string) []string {
	text, err := readFile(path)
	if err != nil {
		return nil
	}
	var roots []string
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		roots = append(roots, filepath.Join(line, "inmanta_plugins"))
	}
	return roots
}

var finderEntry = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`['"]inmanta_plugins((?:\.[A-Za-z0-9_]+)?)['"]\s*:\s*\[?\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`,
	)
})

// finder reads the tables in the Python file that setuptools writes.
func (s *site) finder(path string) []string {
	text, err := readFile(path)
	if err != nil {
		return nil
	}
	var roots []string
	for _, m := range finderEntry().FindAllStringSubmatch(string(text), -1) {
		dir := strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`).Replace(m[2][1 : len(m[2])-1])
		if m[1] == "" {
			if !slices.Contains(roots, dir) {
				roots = append(roots, dir)
			}
		} else if isDir(dir) {
			s.packages[m[1][1:]] = dir
		}
	}
	return roots
}

// directURL returns the folder from which an editable distribution was installed.
func directURL(distInfo string) string {
	text, err := readFile(filepath.Join(distInfo, "direct_url.json"))
	if err != nil {
		return ""
	}
	var origin struct {
		URL string `json:"url"`
		Dir struct {
			Editable bool `json:"editable"`
		} `json:"dir_info"`
	}
	if json.Unmarshal(text, &origin) != nil || !origin.Dir.Editable {
		return ""
	}
	u, err := url.Parse(origin.URL)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return u.Path
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
