package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/embedded"
)

// Exit statuses of `ordain deploy` beside 0 and 1.
const (
	exitModel       = 2 // the model does not compile
	exitIncomplete  = 3 // a dry run could not look at everything
	exitCannot      = 4 // the deployment could not be done at all
	exitInterrupted = 130
)

// mostRounds is how often a model is compiled in one run because facts became known.
const mostRounds = 5

// deployCommand holds the options of `ordain deploy`, and what one run has found.
type deployCommand struct {
	compile   compileFlags
	stateDir  string
	timeout   time.Duration
	agents    []string
	maps      []string
	dryRun    bool
	full      bool
	confirm   bool
	format    string
	printer   *deployPrinter
	known     *plugin.Known
	env       intent.EnvironmentID
	elsewhere []string // agents whose resources are not for this machine
}

// newDeployFolder makes `ordain deploy`.
func newDeployFolder() *cobra.Command {
	var d deployCommand
	c := &cobra.Command{
		Use:   "deploy",
		Short: "Compile and deploy the project in a folder, without a server",
		Long: "Compiles the project in a folder and deploys it from this machine, as the person who runs the\n" +
			"command. Whatever that needs is started for the time of the run, and nothing listens on the network.\n" +
			"What was deployed is kept in data/deploy of the project, so that the next run deploys what differs.\n" +
			"Changes need not be committed. docs/deploy.md says more.\n\n" +
			"Exit status: 0 everything is as intended, 1 something is not, 2 the model does not compile or the\n" +
			"command line was not understood, 3 a dry run is incomplete, 4 the deployment could not be done (for\n" +
			"example, another one is running in this folder), 130 it was interrupted.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.run(c) },
	}
	flags := c.Flags()
	projectFlags(c, &d.compile.options)
	flags.StringVar(&d.stateDir, "state-dir", "", "folder for all that is kept (default data/deploy of the project)")
	flags.BoolVar(&d.dryRun, "dry-run", false, "show what would change; nothing is deployed")
	flags.BoolVar(&d.full, "full", false, "also check and repair what is as intended by the record")
	flags.StringSliceVar(&d.agents, "agent", nil, "deploy only the resources of these agents")
	flags.StringSliceVar(&d.maps, "map", nil,
		"NAME=local: this machine is the agent NAME, although the model says that it is elsewhere (autostart = false)")
	flags.BoolVar(&d.confirm, "confirm", false, "deploy although much of what is deployed is no longer in the model")
	flags.DurationVar(&d.timeout, "handler-timeout", 10*time.Minute, "how long the handler of a resource may run")
	flags.StringVarP(&d.format, "output", "o", "text", "text or json")
	return c
}

// check checks the options.
func (d *deployCommand) check() error {
	if d.format != "text" && d.format != "json" {
		return usageError{fmt.Errorf("there is no output format %q; there are text and json", d.format)}
	}
	if d.timeout <= 0 {
		return usageError{fmt.Errorf("--handler-timeout is %s: it has to be above 0", d.timeout)}
	}
	if d.dryRun && d.full {
		return usageError{errors.New("--dry-run looks at everything already: leave --full out")}
	}
	for _, one := range d.maps {
		name, where, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return usageError{fmt.Errorf("--map %q: it has to be NAME=local", one)}
		}
		if where != "local" && where != "local:" && where != "localhost" {
			return usageError{fmt.Errorf("--map %q: handlers run on this machine, so the only place is local; "+
				"a server has agents on other machines (docs/agents.md)", one)}
		}
	}
	return nil
}

// run deploys and prints the outcome.
func (d *deployCommand) run(c *cobra.Command) error {
	if err := d.check(); err != nil {
		return err
	}
	d.printer = newDeployPrinter(c, d.format == "json")
	result, err := d.deploy(c)
	d.printer.clear()
	switch {
	case c.Context().Err() != nil:
		result.Outcome, result.code = "interrupted", exitInterrupted
		result.Error = "interrupted: what had been deployed is recorded, and the next run goes on from there"
	case err != nil:
		result.Outcome, result.code, result.Error = "failed", exitCannot, err.Error()
	}
	if err := d.printer.result(result); err != nil {
		return err
	}
	switch {
	case result.code == 0:
		return nil
	case d.format == "json", result.Error == "":
		return silentExit(result.code)
	}
	return exitError{code: result.code, text: result.Error}
}

// deploy compiles, deploys, and does both again as long as facts become known that the model waits for.
func (d *deployCommand) deploy(c *cobra.Command) (deployResult, error) {
	ctx := c.Context()
	project, state, err := d.folders()
	if err != nil {
		return deployResult{}, err
	}
	if err := d.prepareCompile(c); err != nil {
		return deployResult{}, err
	}
	var out *compiler.Outcome
	d.env = uuid.New()
	if !embedded.Exists(state) { // nothing is known, so that errors of the model are told before anything is started
		if out, err = d.compileModel(ctx); err != nil || !out.Document.Success {
			return notCompiled(out), err
		}
	}
	world, err := d.open(ctx, project, state)
	if err != nil {
		return deployResult{}, err
	}
	defer world.Close()
	d.env = world.Environment().ID
	for round := 1; ; round++ {
		if d.known, err = world.Known(ctx); err != nil {
			return deployResult{}, err
		}
		if out == nil {
			if out, err = d.compileModel(ctx); err != nil || !out.Document.Success {
				return notCompiled(out), err
			}
		}
		result, err := d.deployOnce(ctx, world, out.Document, originOf(ctx, project))
		if err != nil || d.dryRun || round == mostRounds || len(out.Document.Unknowns) == 0 {
			return result, err
		}
		known, err := world.Known(ctx)
		if err != nil || maps.EqualFunc(known.Facts, d.known.Facts, maps.Equal[map[string]string]) {
			return result, err
		}
		d.printer.say("facts that the model waits for are known now: compiling again")
		out = nil
	}
}

// folders returns the folders of the project and of its state.
func (d *deployCommand) folders() (project, state string, err error) {
	if project, err = filepath.Abs(d.compile.options.Project); err != nil {
		return "", "", err
	}
	if d.stateDir == "" {
		return project, embedded.StateIn(project), nil
	}
	state, err = filepath.Abs(d.stateDir)
	return project, state, err
}

// prepareCompile chooses what compiles have in common.
func (d *deployCommand) prepareCompile(c *cobra.Command) error {
	collectLess()
	o := &d.compile.options
	o.Export = true
	o.OnOutput = func(_, line string) { d.printer.say(printable(line)) }
	if err := chooseCache(&o.CacheDir); err != nil {
		return err
	}
	if err := d.compile.limits(); err != nil {
		return err
	}
	if o.Python != "" {
		o.SitePackages = compiler.PackagesOf(o.Python)
	}
	return nil
}

// compileModel compiles the project, and prints its warnings and errors.
func (d *deployCommand) compileModel(ctx context.Context) (*compiler.Outcome, error) {
	began := time.Now()
	d.printer.doing("compiling")
	o := &d.compile.options
	if o.Python == "" { // kept, because executors use the same version of Python
		if err := chooseInterpreter(ctx, o); err != nil {
			out := compiler.Failed(err)
			d.printer.diagnostics(out)
			return out, nil
		}
	}
	o.Known, o.Environment = d.known, d.env.String()
	out := d.compile.compile(ctx)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	d.printer.diagnostics(out)
	if out.Document.Success {
		d.printer.say(fmt.Sprintf("compiled: %s in %s", count(len(out.Document.Resources), "resource"), took(began)))
	}
	return out, d.choose(out.Document)
}

// choose checks the agents that were named against those of the model, and finds those that are elsewhere.
func (d *deployCommand) choose(doc *export.Document) error {
	if !doc.Success {
		return nil
	}
	var names []string
	for _, r := range doc.Resources {
		if !slices.Contains(names, r.ID.Agent) {
			names = append(names, r.ID.Agent)
		}
	}
	slices.Sort(names)
	here := []string{}
	for _, one := range d.maps {
		name, _, _ := strings.Cut(one, "=")
		here = append(here, name)
	}
	for _, name := range slices.Concat(d.agents, here) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the model has no resource of an agent %q; its agents are %s", name,
				strings.Join(names, ", "))
		}
	}
	d.elsewhere = slices.DeleteFunc(slices.Clone(doc.UnmanagedAgents), func(name string) bool {
		return slices.Contains(here, name)
	})
	return nil
}

// open starts what a deployment needs.
func (d *deployCommand) open(ctx context.Context, project, state string) (*embedded.World, error) {
	began := time.Now()
	first := !embedded.Exists(state)
	d.printer.doing("starting the record")
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	world, err := embedded.Open(ctx, embedded.Config{
		Project: project, StateDir: state, CacheDir: d.compile.options.CacheDir, Environment: d.env,
		Python: d.compile.options.Python, Version: Version, Timeout: d.timeout, Environ: os.Environ(),
		Program: []string{self},
	})
	if err == nil && first {
		d.printer.say(fmt.Sprintf("made %s, which Git ignores, in %s", state, took(began)))
	}
	return world, err
}

// deployOnce stores a compiled model, and deploys it or looks at what that would change.
func (d *deployCommand) deployOnce(
	ctx context.Context, world *embedded.World, doc *export.Document, from intent.FolderOrigin,
) (deployResult, error) {
	version, err := world.StoreVersion(ctx, doc, from, d.dryRun)
	if err != nil {
		return deployResult{}, err
	}
	order := embedded.Order{
		Version: version, Full: d.full, Agents: d.agents, Elsewhere: d.elsewhere, Confirmed: d.confirm,
	}
	if d.dryRun {
		d.printer.doing("looking at what would change")
		look, err := world.DryRun(ctx, order, embedded.Watch{Progress: d.printer.progress})
		return lookResult(look, from), err
	}
	d.printer.doing("deploying")
	report, err := world.Deploy(ctx, order, embedded.Watch{Step: d.printer.step, Progress: d.printer.progress})
	return reportResult(report, from), err
}

// notCompiled is the result when the model has errors; out may be nil.
func notCompiled(out *compiler.Outcome) deployResult {
	r := deployResult{
		Outcome: "does not compile", code: exitModel, Error: "the model does not compile, so nothing was deployed",
	}
	if out != nil {
		r.Diagnostics = diag.Unique(out.Document.Diagnostics)
	}
	return r
}

// took returns how long something took, for people.
func took(began time.Time) time.Duration { return time.Since(began).Round(10 * time.Millisecond) }
