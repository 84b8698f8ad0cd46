package cli

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/server/agent/target"
)

// agentFlags are those of `ordain agent` when it runs an agent.
type agentFlags struct {
	join, stateDir, python string
	isolation              string
	read, write            []string
	keepDaemons            bool
}

const agentLong = `With --join or --state-dir, runs a remote agent on this machine: it connects to a server, and runs
handlers as the server's commands say. A join token, which is made on the server, gives it an identity once:

  ordain agent --join TOKEN --state-dir DIR
  ordain agent --state-dir DIR               afterwards

The token may also be in ORDAIN_JOIN_TOKEN, and the folder in ORDAIN_AGENT_DIR; docs/agents-running.md says more.
The other commands are about the agents of an environment, as the server knows them.`

// runAgent makes `ordain agent` run an agent when it is asked to.
func runAgent(c *cobra.Command) *cobra.Command {
	f := &agentFlags{}
	c.Long = agentLong
	l := c.Flags()
	l.StringVar(&f.join, "join", "", "join a server with this token, then run ('-': read it from standard input)")
	l.StringVar(
		&f.stateDir,
		"state-dir",
		os.Getenv("ORDAIN_AGENT_DIR"),
		"the folder of the agent's key, journal and contents",
	)
	l.StringVar(&f.python, "python", "", "the Python interpreter for handlers")
	l.StringVar(&f.isolation, "isolation", "on", "confine handlers to the folders of the agent: on, off or require")
	l.StringSliceVar(&f.read, "allow-read", nil, "folders that confined handlers may read")
	l.StringSliceVar(&f.write, "allow-write", nil, "folders that confined handlers may change")
	l.BoolVar(&f.keepDaemons, "keep-daemons", false, "let background processes of handlers outlive their executor")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.join == "" && f.stateDir == "" && os.Getenv("ORDAIN_JOIN_TOKEN") == "" {
			return c.Help()
		}
		return f.run(c)
	}
	return c
}

func (f *agentFlags) run(c *cobra.Command) error {
	dir := f.stateDir
	if dir == "" {
		dir = defaultAgentDir()
	}
	cfg := target.Config{
		StateDir: dir, Program: "ordain " + Version, Python: f.python, KeepDaemons: f.keepDaemons,
		Logger: slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)), ChildrenMax: 256,
	}
	var err error
	if cfg.Isolation, err = f.confinement(cfg.Logger, "handlers"); err != nil {
		return err
	}
	token, given := f.join, f.join != ""
	if token == "-" {
		if token, err = readSecretFrom(c, "-"); err != nil {
			return err
		}
	}
	if !given {
		token = os.Getenv("ORDAIN_JOIN_TOKEN")
	}
	if token != "" && (given || !target.Joined(cfg)) {
		if err := target.Join(c.Context(), cfg, token); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), "Joined. The identity is in "+dir+"; the token is used up.")
	}
	a, err := target.New(c.Context(), cfg)
	if err != nil {
		return err
	}
	return a.Run(c.Context())
}

// confinement returns what confines handlers, or other programs as the log calls them, or nil.
func (f *agentFlags) confinement(log *slog.Logger, what string) (*isolation.Config, error) {
	switch f.isolation {
	case "off":
		return nil, nil
	case "on", "require":
	default:
		return nil, usageError{fmt.Errorf("--isolation is on, off or require, not %q", f.isolation)}
	}
	support := isolation.Detect()
	c := &isolation.Config{Support: support, Read: f.read, Write: f.write}
	missing := support.Missing()
	const firstUser = 2_000_000_000
	if os.Geteuid() == 0 && support.Users && isolation.Mapped(firstUser, 1000) {
		c.FirstUser = firstUser
	}
	if len(missing) > 0 {
		text := strings.Join(missing, "; ")
		if f.isolation == "require" {
			return nil, usageError{fmt.Errorf("--isolation is require, and not everything can be separated: %s", text)}
		}
		log.Warn(what+" are confined in part", "missing", text)
	}
	if support.None() {
		return nil, nil
	}
	return c, nil
}

// defaultAgentDir is where the agent of a machine or a user keeps its files.
func defaultAgentDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/ordain-agent"
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "ordain-agent")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "ordain-agent")
}
