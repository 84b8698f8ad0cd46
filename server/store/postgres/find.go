package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// oldest is the first PostgreSQL that the store's statements work on.
const oldest = 13

// programs is one installation of PostgreSQL.
type programs struct {
	dir   string
	major int
}

func (p programs) path(name string) string { return filepath.Join(p.dir, name) }

// findPrograms looks for an installation that can run the cluster; major is that of an existing cluster, 0 for a new
// one. When the machine has none that fits, it fetches one.
func findPrograms(ctx context.Context, cfg Config, major int) (programs, error) {
	const op = "postgres.findPrograms"
	dir := cfg.BinDir
	if dir == "" {
		dir = os.Getenv("ORDAIN_POSTGRES_BIN")
	}
	if dir != "" {
		p, err := inspect(ctx, dir)
		if err != nil {
			return p, fault.Wrap(op, fault.Invalid, err).Say("there is no PostgreSQL in " + dir).
				Hint("let ORDAIN_POSTGRES_BIN name the directory that holds initdb and postgres, or unset it")
		}
		if why := p.unfit(major); why != "" {
			return p, fault.New(op, fault.Invalid, "the PostgreSQL in "+dir+" "+why)
		}
		return p, nil
	}
	var best programs
	var seen []string
	for _, dir := range candidates() {
		p, err := inspect(ctx, dir)
		if err != nil {
			continue
		}
		seen = append(seen, fmt.Sprintf("%d in %s", p.major, dir))
		if p.unfit(major) == "" && p.major > best.major {
			best = p
		}
	}
	if best.major > 0 {
		return best, nil
	}
	if major > 0 && !slices.Contains(fetchableMajors, major) {
		return best, fault.New(op, fault.Unavailable,
			fmt.Sprintf("the database in %s was made by PostgreSQL %d, which is not on this machine", cfg.DataDir,
				major)).
			Hint(fmt.Sprintf("install PostgreSQL %d, or let ORDAIN_POSTGRES_BIN name its directory (found: %s)", major,
				orNone(seen)))
	}
	dir, err := fetch(ctx, cfg, major)
	if err != nil {
		return best, err
	}
	p, err := inspect(ctx, dir)
	if err != nil {
		return p, fault.Wrap(op, fault.Internal, err).Say("the fetched PostgreSQL does not run on this machine").
			Hint("install PostgreSQL " + strconv.Itoa(oldest) + " or newer with the system's package manager")
	}
	return p, nil
}

func orNone(seen []string) string {
	if len(seen) == 0 {
		return "none"
	}
	return strings.Join(seen, ", ")
}

// unfit returns why an installation cannot run a cluster of a major version; empty when it can.
func (p programs) unfit(major int) string {
	switch {
	case p.major < oldest:
		return fmt.Sprintf("is version %d; %d or newer is needed", p.major, oldest)
	case major > 0 && p.major != major:
		return fmt.Sprintf("is version %d; the database was made by version %d", p.major, major)
	}
	return ""
}

// candidates lists directories that may hold an installation, each once.
func candidates() []string {
	var dirs []string
	add := func(dir string) {
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
			dir = filepath.Dir(real)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && isProgram(filepath.Join(dir, "postgres")) {
			add(dir)
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", "/usr/local/pgsql/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		for _, dir := range found {
			add(dir)
		}
	}
	return dirs
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect returns the installation in a directory, with the version that it reports.
func inspect(ctx context.Context, dir string) (programs, error) {
	p := programs{dir: dir}
	for _, name := range []string{"initdb", "postgres"} {
		if !isProgram(p.path(name)) {
			return p, fmt.Errorf("there is no program %s", p.path(name))
		}
	}
	out, err := exec.CommandContext(ctx, p.path("postgres"), "--version").CombinedOutput()
	if err != nil {
		return p, fmt.Errorf("%s --version: %w: %s", p.path("postgres"), err, bytes.TrimSpace(out))
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return p, fmt.Errorf("%s --version says %q", p.path("postgres"), bytes.TrimSpace(out))
	}
	p.major, err = strconv.Atoi(string(m[1]))
	return p, err
}

func quote(s string) string { return strconv.Quote(s) }
