// Package cli is the command line: it reads arguments, calls the part that
// does the work, and prints what came of it for a person (or, with -o json,
// for a program). Exit status: 0 done, 1 it failed and says why, 2 the command
// was not understood.
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

// Version is the version of this program.
const Version = "0.1.0"

// errSaid ends a command whose error has been printed already.
var errSaid = errors.New("said")

// Main runs a command and returns its exit status. A command whose output
// could not be written, to a full disk say, has failed.
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
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
	root := newRoot(args...)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSaid):
		return 1
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

// wantsJSON looks for `-o json` on a command line that was not understood.
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

// notUnderstood is the report of a command that was not understood.
func notUnderstood(err error) diag.Report {
	return diag.NewReport([]diag.Diagnostic{{
		Severity: diag.Error, Kind: "ordain.UsageError", Code: diag.Code("UsageError"),
		Message: err.Error(), Hint: "`ordain --help` lists the commands, and `ordain <command> --help` what they take",
	}}, nil, nil)
}

// reports marks commands that tell programs of their errors in a report.
const reports = "reports"

// failed is the report of a command that could not do its work.
func failed(err error) diag.Report {
	d := diag.Diagnostic{Severity: diag.Error, Kind: "ordain.Error", Code: diag.Code("Error"), Message: err.Error()}
	var unknown unknownError
	if errors.As(err, &unknown) {
		d.Kind, d.Code = "ordain.NotFoundException", diag.Code("NotFoundException")
	}
	return diag.NewReport([]diag.Diagnostic{d}, nil, nil)
}

// unknownError says that there is nothing of a name.
type unknownError struct{ error }

// usageError says that the command line was not understood.
type usageError struct{ error }

// quick are commands that may be over in some milliseconds, of which all other
// commands with their flags would take one.
var quick = map[string]func() *cobra.Command{"check": newCheck, "compile": newCompile, "format": newFormat}

// newRoot makes the commands that a command line may ask for.
func newRoot(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:           "ordain",
		Short:         "Keeps infrastructure equal to the intent committed in Git",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if len(args) > 0 && quick[args[0]] != nil {
		root.AddCommand(quick[args[0]]())
		return root
	}
	root.AddCommand(newUp(), newDemo(), newCompile(), newCheck(), newExplain(), newFormat(), newModel(),
		newHook(), newProject(), newModule(), newEnvironment(), newSettings(), newVersions(), newResource(),
		newCompileReport(), newDryRun(), newPull(), newForge(), newFact(), newAgent(), newExecutor(), newDrift(),
		newDiscovered(), newNotification(), newOverride(), newGit(), newRollback(), newPromote())
	return root
}

// serverFlags are the options of commands that run a server.
type serverFlags struct {
	file     string
	stateDir string
	logDir   string
	address  string
	port     int
	database string
	python   string
}

func (f *serverFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.file, "config", "c", "", "INI file with options")
	flags.StringVar(&f.stateDir, "state-dir", "", "folder for all data")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for all logs")
	flags.StringVar(&f.address, "bind-address", "", "loopback address to listen on")
	flags.IntVar(&f.port, "port", -1, "TCP port; 0 for any free one")
	flags.StringVar(&f.database, "database", "", "URL of a PostgreSQL of yours; without it, a private one is run")
	flags.StringVar(&f.python, "python", "", "Python interpreter for compilers and executors")
}

// load reads the configuration with the flags on top; more holds further overrides.
func (f *serverFlags) load(more map[string]string) (config.Config, error) {
	overrides := map[string]string{}
	for name, value := range more {
		overrides[name] = value
	}
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
	if f.port >= 0 {
		set("server.bind-port", fmt.Sprint(f.port))
	}
	return config.Load(f.file, os.Environ(), overrides)
}
