package peer

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Comparison starts the servers that a benchmark compares: Ordain, built from
// this checkout, and, where ReferencePython names an interpreter, the
// reference. All of them keep their files below Dir.
type Comparison struct {
	Python          string
	ReferencePython string
	ReferenceVenv   string
	PostgresBin     string
	Keep            bool

	Dir     string
	Servers []*Server // Ordain is the first
	Version string    // of the reference
}

// AddFlags defines the flags that say how the servers are started.
func (c *Comparison) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.Python, "python", "", "interpreter for Ordain; empty: its default")
	flags.StringVar(&c.ReferencePython, "reference-python", "python3.13",
		"interpreter for the reference; empty: leave the reference out")
	flags.StringVar(&c.ReferenceVenv, "reference-venv", "", "virtual environment that has inmanta-core already")
	flags.StringVar(&c.PostgresBin, "postgres-bin", "",
		"folder with PostgreSQL 16 or newer for the reference; empty: fetched")
	flags.BoolVar(&c.Keep, "keep", false, "keep the working directory")
}

// Start makes the working directory, builds and installs what is missing, and
// starts the servers. Call Stop afterwards, also after an error.
func (c *Comparison) Start(ctx context.Context) error {
	var err error
	if c.Dir, err = Directory(); err != nil {
		return err
	}
	binary, err := Build(ctx, c.Dir)
	if err != nil {
		return err
	}
	ordain, err := StartOrdain(ctx, binary, c.Folder("state-ordain"), c.Python)
	if err != nil {
		return err
	}
	c.Servers = append(c.Servers, ordain)
	if c.ReferencePython == "" {
		return nil
	}
	if c.PostgresBin == "" {
		if c.PostgresBin, err = FetchPostgres(ctx, c.Folder("pg")); err != nil {
			return err
		}
	}
	reference := Reference{
		Python: c.ReferencePython, PostgresBin: c.PostgresBin, Venv: c.ReferenceVenv, Dir: c.Folder("reference"),
	}
	if c.Version, err = reference.Install(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "the reference is", c.Version)
	s, err := reference.Start(ctx)
	if err != nil {
		return err
	}
	c.Servers = append(c.Servers, s)
	return nil
}

// Stop stops the servers and removes the working directory, unless it is to be kept.
func (c *Comparison) Stop() {
	for _, s := range c.Servers {
		s.Stop()
	}
	if !c.Keep && c.Dir != "" {
		_ = os.RemoveAll(c.Dir)
	}
}

// Folder makes a folder in the working directory that the users of both
// databases can reach, and returns its path.
func (c *Comparison) Folder(name string) string {
	path := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		panic(err)
	}
	return path
}

// Directory makes a temporary working directory. The private database may run
// as another user, who must be able to pass through it.
func Directory() (string, error) {
	dir, err := os.MkdirTemp("", "ordain-bench-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}
