// Package cli is the command line. A command reads its arguments, calls the part
// that does the work, and prints the result for people or, with -o json, for
// programs. There is a file for each command, such as pull.go for `ordain pull`;
// small related commands share one.
//
// Exit status: 0 the command succeeded, 1 it failed and printed why, 2 the command
// line was not understood, 3 a dry run is incomplete.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/server/config"
)

// Version is the version of this program: the last release with a tag, or the next one with -dev.
const Version = "0.5.0-dev"

// errPrinted ends a command whose error has been printed already.
var errPrinted = errors.New("the error has been printed")

// Main runs a command and returns its exit status. A command whose output cannot
// be written, for example to a full disk, fails.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	status := execute(args, stdin, out, stderr)
	if err := out.lost(); err != nil {
		fmt.Fprintln(stderr, "ordain: the output could not be written: "+diag.PlainText(err.Error()))
		status = max(status, 1)
	}
	return status
}

// execute runs a command and prints what went wrong.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills a command that ignores the first
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errPrinted):
		return 1
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	var usage usageError
	misunderstood := errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command")
	if wantsJSON(args) && (misunderstood || command.Annotations[reports] != "") {
		report, status := failed(err), 1
		if misunderstood {
			report, status = notUnderstood(err), 2
		}
		_ = report.Write(stdout) // Main reports the error
		return status
	}
	fmt.Fprintln(stderr, "ordain: "+diag.PlainText(err.Error()))
	if misunderstood {
		fmt.Fprintln(stderr, "Try 'ordain --help'.")
		return 2
	}
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	return 1
}

// wantsJSON reports whether a command line that was not understood has `-o json`.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == "json" {
				return true
			}
		case "-ojson", "-o=json", "--output=json":
			return true
		}
	}
	return false
}

// notUnderstood returns the report for a command line that was not understood.
func notUnderstood(err error) diag.Report {
	return diag.NewReport([]diag.Diagnostic{{
		Severity: diag.Error, Kind: "ordain.UsageError", Code: diag.Code("UsageError"),
		Message: err.Error(), Hint: "`ordain --help` lists the commands, and `ordain <command> --help` what they take",
	}}, nil, nil)
}

// reports marks the commands that, with -o json, print their errors as a report.
const reports = "reports"

// failed returns the report for a command that failed.
func failed(err error) diag.Report {
	d := diag.Diagnostic{Severity: diag.Error, Kind: "ordain.Error", Code: diag.Code("Error"), Message: err.Error()}
	var unknown unknownError
	if errors.As(err, &unknown) {
		d.Kind, d.Code = "ordain.NotFoundException", diag.Code("NotFoundException")
	}
	return diag.NewReport([]diag.Diagnostic{d}, nil, nil)
}

// unknownError means that nothing has the name that was asked for.
type unknownError struct{ error }

// usageError means that the command line was not understood.
type usageError struct{ error }

// newRoot makes the root command with all commands below it.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "ordain",
		Short:         "Keeps infrastructure equal to the intent committed in Git",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newUp(), newServe(), newReplica(), newDemo(), newDeployFolder())
	root.AddCommand(newCompile(), newExport(), newCheck(), newExplain(), newFormat(), newModel(),
		newHook(), newProject(), newModule(), newEnvironment(), newSettings(), newVersions(), newResource(),
		newCompileReport(), newDryRun(), newPull(), newForge(), newProcess(), newFact(), newAgent(), newExecutor(),
		newDrift(), newLogs(), newDiscovered(), newNotification(), newAudit(), newOverride(), newGit(), newStanding(),
		newRollback(),
		newPromote(), newCluster(), newProvisioner(), newLogin(), newLogout(), newUser(), newRole(), newAccess(),
		newToken(), newTrust())
	return root
}

// serverFlags holds the flags of commands that run a server.
type serverFlags struct {
	file     string
	stateDir string
	logDir   string
	address  string
	port     int
	database string
	python   string
	proxied  bool
	roles    string
	keyFile  string
}

func (f *serverFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.file, "config", "c", "", "INI file with options")
	flags.StringVar(&f.stateDir, "state-dir", "", "folder for all data")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for all logs")
	flags.StringVar(&f.address, "bind-address", "",
		"address to listen on; other than loopback only with authentication and HTTPS")
	flags.IntVar(&f.port, "port", -1, "TCP port; 0 for any free one")
	flags.StringVar(&f.database, "database", "",
		"URL of your own PostgreSQL; without it, the server runs a private one")
	flags.StringVar(&f.python, "python", "", "Python interpreter for compilers and executors")
	flags.BoolVar(&f.proxied, "behind-proxy", false, "clients come through a proxy that serves HTTPS at the public-url")
}

// load reads the configuration; the flags override it.
func (f *serverFlags) load() (config.Config, error) {
	overrides := map[string]string{}
	set := func(name, value string) {
		if value != "" {
			overrides[name] = value
		}
	}
	set("config.state-dir", f.stateDir)
	set("config.log-dir", f.logDir)
	set("server.bind-address", f.address)
	set("database.url", f.database)
	set("compiler.python", f.python)
	set("server.roles", f.roles)
	set("server.secret-key-file", f.keyFile)
	if f.proxied {
		set("server.behind-proxy", "true")
	}
	if f.port >= 0 {
		set("server.bind-port", fmt.Sprint(f.port))
	}
	return config.Load(f.file, os.Environ(), overrides)
}
