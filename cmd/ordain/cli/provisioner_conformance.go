package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/conformance"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/task"
)

// newProvisionerConformance makes `ordain provisioner conformance`, which needs no server.
func newProvisionerConformance() *cobra.Command {
	f := &conformanceFlags{}
	c := &cobra.Command{
		Use:   "conformance FOLDER",
		Short: "Check that a plug-in keeps the contract of docs/plugins.md",
		Long: "Runs the plug-in of a folder with tasks that it cannot understand, and checks what it answers. With\n" +
			"--fields, a plug-in for providers also makes, finds and deletes machines, and is killed meanwhile:\n" +
			"use an account for tests. With --machines, the checks look at the provider itself: the command prints\n" +
			"the tag of each of its machines, one a line.",
		Example: "  ordain provisioner conformance ./my-cloud\n" +
			"  ordain provisioner conformance ./my-cloud --fields account.json --machines ./list-tags",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	l := c.Flags()
	l.StringVar(&f.fields, "fields", "", "JSON file with the fields of the provider")
	l.StringVar(&f.node, "node", "", "JSON file with what the task says of the node, as flavor and image")
	l.StringArrayVar(&f.files, "file", nil, "a resource for the plug-in, as TYPE/NAME=PATH; may be repeated")
	l.StringVar(&f.machines, "machines", "", "command for /bin/sh that prints the tags of the machines")
	l.StringSliceVar(&f.only, "only", nil, "run only checks whose name has one of these texts")
	l.DurationVar(&f.patience, "patience", 30*time.Second, "how long the plug-in may take for one task")
	return c
}

type conformanceFlags struct {
	fields, node, machines string
	files, only            []string
	patience               time.Duration
}

func (f *conformanceFlags) run(c *cobra.Command, folder string) error {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	p, err := program.Open(program.Config{}, dir)
	if err != nil {
		return err
	}
	checks, subject, err := f.choose(p)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
	failed := 0
	for _, check := range checks {
		began := time.Now()
		err := check.Run(c.Context(), subject)
		if c.Context().Err() != nil {
			return errors.New("the checks were stopped")
		}
		verdict := "passed"
		if err != nil {
			verdict = "FAILED"
			failed++
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", verdict, time.Since(began).Round(time.Millisecond), check.Name)
		if err != nil {
			fmt.Fprintf(out, "\t\t%s\n", printable(err.Error()))
		}
		_ = out.Flush() // Main reports the error
	}
	fmt.Fprintf(c.OutOrStdout(), "%d of %d checks passed.\n", len(checks)-failed, len(checks))
	if f.fields == "" && len(p.Manifest.ProviderTypes) > 0 {
		fmt.Fprintln(c.OutOrStdout(), "No machine was made: name the fields of a provider with --fields for that.")
	}
	if failed > 0 {
		return errPrinted
	}
	return nil
}

// choose returns the checks to run, and the plug-in with its world.
func (f *conformanceFlags) choose(p *program.Program) ([]conformance.Check, conformance.Subject, error) {
	s := conformance.Subject{Plugin: p, Program: p, Patience: f.patience}
	checks := conformance.Programs()
	if f.fields != "" {
		if len(p.Manifest.ProviderTypes) == 0 {
			return nil, s, usageError{errors.New("--fields is for plug-ins with provider types, and this one has none")}
		}
		checks = slices.Concat(checks, conformance.Providers())
		if err := readJSON(f.fields, &s.Fields); err != nil {
			return nil, s, err
		}
	}
	if f.node != "" {
		if err := readJSON(f.node, &s.Node); err != nil {
			return nil, s, err
		}
	}
	if f.machines != "" {
		s.Machines = func(ctx context.Context) ([]string, error) { return listTags(ctx, f.machines) }
	}
	if len(f.files) > 0 {
		files := localFiles{}
		for _, each := range f.files {
			key, path, ok := strings.Cut(each, "=")
			kind, name, also := strings.Cut(key, "/")
			if !ok || !also || kind == "" || name == "" || path == "" {
				return nil, s, usageError{fmt.Errorf("--file is TYPE/NAME=PATH, not %q", each)}
			}
			path, err := filepath.Abs(path)
			if err != nil {
				return nil, s, err
			}
			files[key] = path
			s.Resources = append(s.Resources, task.Resource{
				Kind: "providertypes", Plugin: p.Manifest.Name, Type: kind, Name: name, Version: 1,
			})
		}
		s.Files = files
	}
	if len(f.only) > 0 {
		checks = slices.DeleteFunc(checks, func(c conformance.Check) bool {
			return !slices.ContainsFunc(f.only, func(text string) bool { return strings.Contains(c.Name, text) })
		})
	}
	if len(checks) == 0 {
		return nil, s, usageError{errors.New("no check has such a name")}
	}
	return checks, s, nil
}

// localFiles are resources of this machine, by TYPE/NAME.
type localFiles map[string]string

// Path implements plugin.Files.
func (f localFiles) Path(resourceType, name string) (string, error) {
	if path, ok := f[resourceType+"/"+name]; ok {
		return path, nil
	}
	return "", fmt.Errorf("there is no resource %s of the type %s; name it with --file", name, resourceType)
}

// listTags runs the command of --machines.
func listTags(ctx context.Context, command string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the command of --machines failed: %w", err)
	}
	return strings.Fields(string(text)), nil
}

const maxFields = 1 << 20

// readJSON reads a small file.
func readJSON(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFields))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fault.Wrap("cli.conformance", fault.Invalid, err).
			Say("the file " + path + " has no JSON object of this form")
	}
	return nil
}
