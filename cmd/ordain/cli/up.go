package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/cmd/ordain/demo"
	"ordain.dev/ordain/server"
)

func newUp() *cobra.Command {
	var flags serverFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "Run the server with everything it needs on this machine",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return runServer(c, &flags) },
	}
	flags.add(c)
	return c
}

func newServe() *cobra.Command {
	var flags serverFlags
	c := &cobra.Command{
		Use:   "serve --roles ROLES --database URL",
		Short: "Run one of several server processes that share a database",
		Long: "Runs a server process with some of the roles:\n" +
			"  api      answers people, programs and webhooks, and records what they ask for; any number of them\n" +
			"  process  owns environments: follows their repositories, compiles, deploys; several share them\n" +
			"  agent    is what remote agents talk to\n" +
			"All processes need the same database and the same secret key file, and each has a state directory of\n" +
			"its own. Each may be stopped and started without the others.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runServer(c, &flags) },
	}
	flags.add(c)
	c.Flags().StringVar(&flags.roles, "roles", "", "roles of this process: api, process, agent; default: all")
	c.Flags().StringVar(&flags.keyFile, "secret-key-file", "",
		"file with the key that all processes share; default: server/.secret.key in the state directory")
	return c
}

// runServer runs a server until it is interrupted or cannot go on.
func runServer(c *cobra.Command, flags *serverFlags) error {
	options, err := flags.load()
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{Options: options, Version: Version, Progress: progress(c.OutOrStdout())})
	if err != nil {
		return err
	}
	if err := s.Start(c.Context()); err != nil {
		return err
	}
	defer s.Stop()
	roles := ""
	if !options.Alone() {
		roles = " with the roles " + strings.Join(options.Roles, ", ")
	}
	fmt.Fprintf(c.OutOrStdout(), "Ordain %s is up%s: %s\nState is in %s, logs are in %s. Interrupt to stop.\n",
		Version, roles, s.URL(), s.Layout().StateDir(), s.Layout().LogDir())
	if link := s.FirstLink(); link != "" {
		fmt.Fprintf(c.OutOrStdout(), "There is no user yet. This link makes the first administrator. It works "+
			"once, within an hour:\n%s\n", link)
	}
	return s.Wait(c.Context())
}

func progress(w io.Writer) func(string, time.Duration) {
	return func(step string, took time.Duration) {
		fmt.Fprintf(w, "%-12s %s\n", step, took.Round(time.Millisecond))
	}
}

func newDemo() *cobra.Command {
	var flags serverFlags
	var exit bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole flow on a sample repository",
		Long: "Starts a server in a temporary directory, makes a repository with a sample project, and shows a push\n" +
			"becoming a deployment, a second one that deploys only what changed, damage that is repaired, and a\n" +
			"broken model that changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c, &flags, exit) },
	}
	flags.add(c)
	c.Flags().BoolVar(&exit, "exit", false, "end after the last step instead of staying up")
	return c
}

func runDemo(c *cobra.Command, flags *serverFlags, exit bool) error {
	if flags.port < 0 {
		flags.port = 0
	}
	dir := flags.stateDir
	if dir == "" {
		temp, err := os.MkdirTemp("", "ordain-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		if err := os.Chmod(temp, 0o711); err != nil { // the database may run as another user
			return err
		}
		dir = temp
	} else if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	options, err := flags.load()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := demo.Run(c.Context(),
		demo.Config{Dir: dir, Options: options, Program: []string{self}, Version: Version, Out: c.OutOrStdout()})
	if err != nil {
		return err
	}
	defer s.Stop()
	if exit {
		fmt.Fprintln(c.OutOrStdout(), "\nThat was the whole flow.")
		return nil
	}
	fmt.Fprintf(c.OutOrStdout(),
		"\nThe console: %s\nPush to %s/bakery.git yourself. Interrupt to stop; everything is in %s.\n", s.URL(),
		dir, dir)
	return s.Wait(c.Context())
}
