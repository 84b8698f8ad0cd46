package venv

import (
	"bufio"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// machine is pip's configuration on this machine, from options such as index-url
// to their values. Later files override earlier ones, and environment variables
// override files, as they do for pip.
type machine map[string][]string

// lists are the options with several values.
var lists = []string{"extra-index-url", "find-links", "trusted-host", "constraint", "no-binary", "only-binary"}

func readMachine(environ []string, prefix string) machine {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	m := machine{}
	if override := env["PIP_CONFIG_FILE"]; override != os.DevNull {
		for _, path := range append(pipFiles(env, prefix), override) {
			if text, err := os.ReadFile(path); path != "" && err == nil {
				m.parse(string(text))
			}
		}
	}
	for name, value := range env {
		option, ok := strings.CutPrefix(name, "PIP_")
		if !ok || option == "CONFIG_FILE" || value == "" {
			continue
		}
		m.set(strings.ToLower(strings.ReplaceAll(option, "_", "-")), value)
	}
	return m
}

func pipFiles(env map[string]string, prefix string) []string {
	home := env["HOME"]
	var files []string
	if runtime.GOOS == "darwin" {
		files = append(files, "/Library/Application Support/pip/pip.conf")
		if home != "" {
			files = append(files, filepath.Join(home, "Library/Application Support/pip/pip.conf"))
		}
	}
	config := env["XDG_CONFIG_DIRS"]
	if config == "" {
		config = "/etc/xdg"
	}
	for _, dir := range filepath.SplitList(config) {
		files = append(files, filepath.Join(dir, "pip/pip.conf"))
	}
	files = append(files, "/etc/pip.conf")
	if home != "" {
		files = append(files, filepath.Join(home, ".pip/pip.conf"))
		if env["XDG_CONFIG_HOME"] == "" {
			files = append(files, filepath.Join(home, ".config/pip/pip.conf"))
		}
	}
	if dir := env["XDG_CONFIG_HOME"]; dir != "" {
		files = append(files, filepath.Join(dir, "pip/pip.conf"))
	}
	if prefix != "" {
		files = append(files, filepath.Join(prefix, "pip.conf"))
	}
	return files
}

// parse reads the sections [global] and [install]. An indented line continues the
// value before it.
func (m machine) parse(text string) {
	sections := map[string]map[string]string{"global": {}, "install": {}}
	var section map[string]string
	key := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[' && trimmed[len(trimmed)-1] == ']':
			section, key = sections[trimmed[1:len(trimmed)-1]], ""
		case section == nil:
		case key != "" && (line[0] == ' ' || line[0] == '\t'):
			section[key] = strings.TrimSpace(section[key] + " " + trimmed)
		default:
			at := strings.IndexAny(trimmed, "=:")
			if at < 0 {
				continue
			}
			key = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:at])), "_", "-")
			section[key] = strings.TrimSpace(trimmed[at+1:])
		}
	}
	for _, name := range []string{"global", "install"} {
		for key, value := range sections[name] {
			m.set(key, value)
		}
	}
}

func (m machine) set(option, value string) {
	if slices.Contains(lists, option) {
		m[option] = strings.Fields(value)
		return
	}
	m[option] = []string{value}
}

func (m machine) one(option string) string {
	if v := m[option]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// sources says where the packages of a Spec come from.
type sources struct {
	index      string
	extra      []string
	findLinks  []string
	noIndex    bool
	pre        bool
	noPre      bool     // the project forbids pre-releases, whatever the machine says
	constraint []string // files of the machine
	noBinary   []string
	onlyBinary []string
}

// choose merges the configurations of the project and the machine. The indexes of
// the machine count only if the project asks for its configuration; its local
// folders of wheels always count.
func (m machine) choose(pip intent.PipConfig) sources {
	s := sources{index: pip.IndexURL, extra: slices.Clone(pip.ExtraIndexURL), findLinks: slices.Clone(m["find-links"])}
	if pip.Pre != nil {
		s.pre, s.noPre = *pip.Pre, !*pip.Pre
	}
	if !pip.UseSystemConfig {
		return s
	}
	if s.index == "" {
		s.index = m.one("index-url")
	}
	s.extra = append(s.extra, m["extra-index-url"]...)
	s.noIndex = truth(m.one("no-index")) && pip.IndexURL == ""
	s.pre = s.pre || (!s.noPre && truth(m.one("pre")))
	s.constraint = m["constraint"]
	s.noBinary, s.onlyBinary = m["no-binary"], m["only-binary"]
	return s
}

// private reports whether one of the indexes is asked with a name or password.
func (s sources) private() bool {
	for _, address := range append([]string{s.index}, s.extra...) {
		if u, err := url.Parse(address); err != nil || u.User != nil {
			return true
		}
	}
	return false
}

func truth(text string) bool {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// passed are the environment variables that installers get: those for programs,
// the network, certificates and the home folder, and no others of the server.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
	"NETRC", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME",
	"LD_LIBRARY_PATH", "CC", "CXX", "CFLAGS", "LDFLAGS", "PKG_CONFIG_PATH",
}

func installerEnv(environ []string) []string {
	var out []string
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(passed, name) {
			out = append(out, entry)
		}
	}
	return out
}

// uvEnv returns the environment of uv, which does not read pip's configuration
// itself. Addresses are variables rather than arguments because they may contain
// credentials.
func (m machine) uvEnv(environ []string, s sources, cache string, system bool) []string {
	env := append(installerEnv(environ),
		"UV_CACHE_DIR="+cache, "UV_LINK_MODE=copy", "UV_NO_PROGRESS=1", "NO_COLOR=1", "UV_PYTHON_DOWNLOADS=never",
		"UV_INDEX_STRATEGY=unsafe-best-match") // choose the best version of all indexes, like pip
	if !system {
		env = append(env, "UV_NO_CONFIG=1")
	}
	add := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	add("UV_DEFAULT_INDEX", s.index)
	add("UV_INDEX", strings.Join(s.extra, " "))
	add("UV_FIND_LINKS", strings.Join(s.findLinks, ","))
	if s.noIndex {
		add("UV_NO_INDEX", "1")
	}
	if s.pre {
		add("UV_PRERELEASE", "allow")
	}
	if s.noPre { // overrides a uv.toml of the machine
		add("UV_PRERELEASE", "if-necessary-or-explicit")
	}
	add("UV_INSECURE_HOST", strings.Join(m["trusted-host"], " "))
	add("UV_HTTP_TIMEOUT", m.one("timeout"))
	if m.one("timeout") == "" {
		add("UV_HTTP_TIMEOUT", m.one("default-timeout"))
	}
	add("UV_HTTP_RETRIES", m.one("retries"))
	if cert := m.one("cert"); cert != "" {
		add("SSL_CERT_FILE", cert)
	} else {
		add("UV_SYSTEM_CERTS", "1")
		add("UV_NATIVE_TLS", "1")
	}
	add("SSL_CLIENT_CERT", m.one("client-cert"))
	add("ALL_PROXY", m.one("proxy"))
	return env
}

// pipEnv returns the environment of pip.
func (m machine) pipEnv(environ []string, s sources) []string {
	env := append(
		installerEnv(environ),
		"PIP_CONFIG_FILE="+os.DevNull,
		"PIP_DISABLE_PIP_VERSION_CHECK=1",
		"PIP_NO_INPUT=1",
		"PIP_NO_COLOR=1",
	)
	add := func(option, value string) {
		if value != "" {
			env = append(env, "PIP_"+strings.ToUpper(strings.ReplaceAll(option, "-", "_"))+"="+value)
		}
	}
	add("index-url", s.index)
	add("extra-index-url", strings.Join(s.extra, " "))
	add("find-links", strings.Join(s.findLinks, " "))
	if s.noIndex {
		add("no-index", "1")
	}
	if s.pre {
		add("pre", "1")
	}
	options := []string{"trusted-host", "timeout", "default-timeout", "retries", "cert", "client-cert", "proxy"}
	for _, option := range options {
		add(option, strings.Join(m[option], " "))
	}
	return env
}
