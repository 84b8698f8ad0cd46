package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Reference says what the reference server needs.
type Reference struct {
	Python      string // an interpreter that the newest inmanta-core supports
	PostgresBin string // folder with initdb and pg_ctl of PostgreSQL 16 or newer
	Venv        string // a virtual environment that has inmanta-core already; empty: one is made
	Dir         string // everything is installed and stored below it
}

// Install puts the newest inmanta-core from PyPI into a virtual environment
// and returns its version.
func (r Reference) Install(ctx context.Context) (string, error) {
	venv := r.venv()
	if r.Venv == "" {
		for _, args := range [][]string{
			{r.Python, "-m", "venv", venv},
			{filepath.Join(venv, "bin", "pip"), "install", "--quiet", "inmanta-core", "inmanta-module-std"},
		} {
			if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
				return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(venv, "bin", "python"), "-c",
		"from importlib.metadata import version; print(version('inmanta-core'))").Output()
	return strings.TrimSpace(string(out)), err
}

func (r Reference) venv() string {
	if r.Venv != "" {
		return r.Venv
	}
	return filepath.Join(r.Dir, "venv")
}

// Start starts the reference server and a database of its own.
func (r Reference) Start(ctx context.Context) (*Server, error) {
	s := &Server{Name: "reference"}
	database, err := r.startDatabase(ctx, s)
	if err != nil {
		s.Stop()
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	fmt.Fprintf(&config, "[config]\nstate-dir=%s\nlog-dir=%s\n",
		filepath.Join(r.Dir, "state"), filepath.Join(r.Dir, "log"))
	fmt.Fprintf(&config, "[database]\nhost=127.0.0.1\nport=%d\nname=postgres\nusername=postgres\n", database)
	fmt.Fprintf(&config, "[server]\nbind-address=127.0.0.1\nbind-port=%d\n", port)
	for _, client := range []string{"client", "cmdline", "compiler", "agent"} {
		fmt.Fprintf(&config, "[%s_rest_transport]\nhost=127.0.0.1\nport=%d\n", client, port)
	}
	file := filepath.Join(r.Dir, "reference.cfg")
	for _, dir := range []string{"state", "log", "conf.d"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	err = s.start(r.Dir, os.Environ(), filepath.Join(r.venv(), "bin", "inmanta"),
		"-c", file, "--config-dir", filepath.Join(r.Dir, "conf.d"), "server")
	if err == nil {
		err = s.waitReady(ctx, port, "/api/v2/health")
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// startDatabase makes a PostgreSQL cluster and starts it on a loopback port, as
// an unprivileged user when we are root. It returns the port.
func (r Reference) startDatabase(ctx context.Context, s *Server) (int, error) {
	port, err := FreePort()
	if err != nil {
		return 0, err
	}
	data := filepath.Join(r.Dir, "pgdata")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return 0, err
	}
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			if who, err = user.Lookup("nobody"); err != nil {
				return 0, err
			}
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		if err := os.Chown(data, uid, gid); err != nil {
			return 0, err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, filepath.Join(r.PostgresBin, name), args...)
		cmd.Dir, cmd.SysProcAttr = "/", attributes
		cmd.Env = append(os.Environ(), "HOME=/")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if err := run("initdb", "-D", data, "-U", "postgres", "-A", "trust"); err != nil {
		return 0, err
	}
	options := fmt.Sprintf("-p %d -k %s -c listen_addresses=127.0.0.1", port, data)
	if err := run("pg_ctl", "-D", data, "-o", options, "-l", filepath.Join(data, "log"), "-w", "start"); err != nil {
		return 0, err
	}
	s.stop = append(s.stop, func() {
		cmd := exec.Command(filepath.Join(r.PostgresBin, "pg_ctl"), "-D", data, "-m", "fast", "-w", "stop")
		cmd.Dir, cmd.SysProcAttr = "/", attributes
		_ = cmd.Run()
	})
	return port, nil
}
