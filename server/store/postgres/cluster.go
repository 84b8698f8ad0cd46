package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// role is the name of our database, and of our role in it.
const role = "ordain"

// clusterMajor returns the version that made the cluster, 0 when there is none yet.
func clusterMajor(dataDir string) (int, error) {
	const op = "postgres.clusterMajor"
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(dataDir)
		if err == nil && len(entries) > 0 {
			return 0, fault.New(op, fault.Conflict, dataDir+" contains files that are not a database").
				Hint("move them away, or choose another state directory")
		}
		return 0, nil
	}
	if err != nil {
		return 0, inWords(op, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fault.New(op, fault.Invalid,
			dataDir+" was not made by a known PostgreSQL: "+quote(strings.TrimSpace(string(text))))
	}
	return major, nil
}

// segment is the size in MiB of a file of the write-ahead log. A commit that needs a new file waits until that is
// filled with zeros and synced, which takes 20 ms for the default of 16 MiB.
const segment = "4"

// create makes the cluster under a temporary name and renames it when it is complete.
func create(ctx context.Context, cfg Config, p programs, a account) error {
	const op = "postgres.create"
	fresh := cfg.DataDir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return inWords(op, err)
	}
	if err := a.privateDir(fresh); err != nil {
		return err
	}
	if err := a.checkWay(fresh); err != nil {
		return err
	}
	arguments := []string{
		"-D", fresh, "-U", role, "-A", "reject", "-E", "UTF8", "--locale=C", "--wal-segsize=" + segment,
	}
	if cfg.Throwaway {
		arguments = append(arguments, "-N")
	}
	// C.UTF-8 knows upper and lower case beyond English, but not every system has it.
	out, err := run(ctx, p, a, "", "initdb", append(arguments, "--lc-ctype=C.UTF-8")...)
	if err != nil && strings.Contains(out, "locale") {
		if err := os.RemoveAll(fresh); err != nil {
			return inWords(op, err)
		}
		if err := a.privateDir(fresh); err != nil {
			return err
		}
		out, err = run(ctx, p, a, "", "initdb", arguments...)
	}
	if err != nil {
		return stopped(ctx, failure(op, "a new database could not be made in "+cfg.DataDir, out))
	}
	if err := single(ctx, p, a, fresh, "CREATE DATABASE "+role); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(fresh, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return inWords(op, err)
	}
	_, err = f.WriteString("\n# ordain.conf is written anew at every start; put your own settings into local.conf.\n" +
		"include_if_exists = 'ordain.conf'\ninclude_if_exists = 'local.conf'\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return inWords(op, err)
	}
	if err := os.Remove(cfg.DataDir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return inWords(op, err)
	}
	return inWordsOrNil(op, os.Rename(fresh, cfg.DataDir))
}

// single runs a statement on a cluster that no server is running on. Messages of errors never quote it.
func single(ctx context.Context, p programs, a account, dataDir, statement string) error {
	out, err := run(ctx, p, a, statement+";\n", "postgres", "--single", "-F", "-D", dataDir, "postgres")
	if err != nil || strings.Contains(out, "ERROR:") {
		return stopped(ctx, failure("postgres.single", "the database in "+dataDir+" could not be prepared", out))
	}
	return nil
}

// stopped returns the error of ctx, where that has ended, instead of what it caused.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// run runs one program of the installation as the account and returns its output.
func run(ctx context.Context, p programs, a account, input, name string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path(name), arguments...)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.SysProcAttr = attributes(a, syscall.SIGKILL)
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		out = []byte(err.Error())
	}
	return string(out), err
}

// environment is all that the database gets of our environment.
func environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_MESSAGES=C", "TZ=UTC"}
	if libraries, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+libraries)
	}
	return env
}

// settings returns settings for a server that is small when idle: few processes, little memory.
func settings(cfg Config, socketDir string) map[string]string {
	s := map[string]string{
		"listen_addresses":                "",
		"port":                            strconv.Itoa(port),
		"unix_socket_directories":         `"` + strings.ReplaceAll(socketDir, `"`, `""`) + `"`,
		"unix_socket_permissions":         "0700",
		"max_connections":                 "40",
		"shared_buffers":                  "32MB",
		"work_mem":                        "8MB",
		"maintenance_work_mem":            "32MB",
		"autovacuum_max_workers":          "1",
		"max_worker_processes":            "1",
		"max_parallel_workers_per_gather": "0",
		"max_logical_replication_workers": "0",
		"max_wal_senders":                 "0",
		"wal_level":                       "minimal",
		"min_wal_size":                    "32MB",
		"max_wal_size":                    "256MB",
		"jit":                             "off",
		"timezone":                        "UTC",
		"logging_collector":               "off",
		"log_destination":                 "stderr",
		"log_line_prefix":                 "",
		"log_checkpoints":                 "off",
		// A client learns itself why its statement failed, and the statement may hold what must not be logged.
		"log_min_messages":        "log",
		"log_min_error_statement": "panic",
	}
	if cfg.Throwaway {
		s["fsync"], s["synchronous_commit"], s["full_page_writes"] = "off", "off", "off"
	}
	maps.Copy(s, cfg.Settings)
	return s
}

// configure writes what may have changed since the last start: the settings, and how clients prove themselves.
func configure(cfg Config, a account, socketDir string) error {
	const op = "postgres.configure"
	var conf strings.Builder
	conf.WriteString("# Written by Ordain at every start. Put your own settings into local.conf.\n")
	s := settings(cfg, socketDir)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(s[name], "'", "''"))
	}
	for name, text := range map[string]string{
		"ordain.conf": conf.String(),
		"pg_hba.conf": "# Written by Ordain at every start: the socket, and only with the server's password.\n" +
			"local all " + role + " scram-sha-256\n",
		"pg_ident.conf": "# Written by Ordain at every start: nobody is admitted for the name of an account.\n",
	} {
		path := filepath.Join(cfg.DataDir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return inWords(op, err)
		}
		if a.switched {
			if err := os.Chown(path, a.uid, a.gid); err != nil {
				return inWords(op, err)
			}
		}
	}
	return nil
}
