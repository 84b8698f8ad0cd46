package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/job"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/fault"
)

// warmDescriptor is where a server puts the socket of a template.
const warmDescriptor = 3

// compileFlags are the options of `ordain compile`.
type compileFlags struct {
	options    compiler.Options
	modelJSON  string
	exportJSON string
	resources  string // file for the resources alone
	recipe     string // file for how the next compile may begin warm
	compiler   []string
	memoryMax  uint64 // bytes
	memoryMiB  uint64
	again      bool // on every save
	say        sayer
}

func newCompile() *cobra.Command {
	var f compileFlags
	c := &cobra.Command{
		Use:   "compile [-]",
		Short: "Compile a project",
		Long: "Compiles the project in a folder and says what is wrong with it. With --export it also builds the\n" +
			"resources, off line. With - it reads a compile job from standard input, as the server writes it;\n" +
			"then it takes no options.\n" +
			"Exit status: 0 the model compiles, 1 it does not.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := f.readJob(c, args[0]); err != nil {
					return err
				}
			}
			return runCompile(c, &f)
		},
	}
	flags := c.Flags()
	projectFlags(c, &f.options)
	flags.BoolVar(&f.options.Export, "export", false, "build the resources too")
	flags.BoolVar(&f.options.Partial, "partial", false, "export only the resource sets that are present")
	flags.StringArrayVar(&f.options.DeleteSets, "delete-resource-set", nil,
		"resource set to remove with a partial export")
	flags.StringArrayVar(&f.options.ExportFunctions, "export-plugin", nil,
		"run this export function instead of those of the configuration")
	flags.StringVar(&f.modelJSON, "model-json", "", "write model and resources to this file")
	flags.StringVar(&f.resources, "resources-json", "",
		"with --export: write the resources alone to this file, as inmanta export -j does")
	flags.StringVar(&f.exportJSON, "export-json", "", "write what a server stores to this file")
	flags.StringArrayVar(&f.compiler, "compiler-option", nil, "option of the compiler, such as datatrace_enable")
	flags.DurationVar(&f.options.PluginTimeout, "plugin-timeout", 0, "how long a plug-in may run (default 10m)")
	flags.Uint64Var(&f.memoryMiB, "memory-max", 0,
		"MiB that the compile may use (default: four fifths of the machine's or the container's memory)")
	flags.StringVar(&f.options.Environment, "environment", "", "id of the environment that the model is for")
	flags.BoolVar(&f.again, "watch", false, "compile again whenever a file is saved, until it is interrupted")
	f.say.flag(c)
	return c
}

// readJob takes the options of the compile from a job on standard input.
func (f *compileFlags) readJob(c *cobra.Command, arg string) error {
	if arg != "-" {
		return usageError{fmt.Errorf("compile takes no argument %q; --project names the folder of the project", arg)}
	}
	if c.Flags().NFlag() > 0 {
		return usageError{errors.New("compile - takes everything from the job on standard input, and no options")}
	}
	j, err := job.Read(c.InOrStdin())
	if err != nil {
		return fault.Wrap("cli.compile", fault.Invalid, err)
	}
	o := &f.options
	o.Project, o.Python, o.CacheDir, o.Environment = j.Project, j.Python, j.CacheDir, j.Environment
	o.Export, o.Partial, o.DeleteSets, o.Known = true, j.Partial, j.RemovedSets, &j.Known
	f.exportJSON, f.recipe, f.memoryMax = j.ExportFile, j.RecipeFile, j.MemoryMax
	if j.WarmKey != "" {
		syscall.CloseOnExec(warmDescriptor)
		o.Warm = &plugin.Warm{Handover: os.NewFile(warmDescriptor, "handover"), Key: j.WarmKey}
	}
	return nil
}

// projectFlags say what is compiled, and with which interpreter.
func projectFlags(c *cobra.Command, o *compiler.Options) {
	flags := c.Flags()
	flags.StringVar(&o.Project, "project", projectHere(), "folder with project.yml")
	flags.StringVar(&o.Main, "main", "", "entry file, relative to the project or absolute (default main.cf)")
	flags.BoolVar(&o.NoStd, "no-std", false, "do not import std implicitly")
	flags.StringVar(&o.Python, "python", "", "interpreter for plug-ins (default: that of the project's .env)")
	flags.StringVar(&o.CacheDir, "cache-dir", "", "folder for what can be made again")
}

// projectHere is the project that the working directory is in: the folder
// itself, or the nearest one above it that has a project.yml.
func projectHere() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "project.yml")); err == nil && !info.IsDir() {
			if dir == here {
				return "."
			}
			return dir
		}
		if dir == filepath.Dir(dir) {
			return "."
		}
	}
}

// compile compiles, also when there is no interpreter to be had: then that is
// what is wrong with the project, and the files say so as for any other error.
func (f *compileFlags) compile(ctx context.Context) *compiler.Outcome {
	o := f.options // chosen anew each time: with --watch, requirements may have changed
	if o.Python == "" {
		if err := chooseInterpreter(ctx, &o); err != nil {
			return compiler.Failed(err)
		}
	}
	if o.Export && o.ExportFunctions == nil {
		var err error
		if o.ExportFunctions, err = exportFunctions(o.Project); err != nil {
			return compiler.Failed(err)
		}
	}
	return compiler.Run(ctx, o)
}

func runCompile(c *cobra.Command, f *compileFlags) error {
	collectLess()
	f.options.ModelOnly = f.exportJSON == ""
	if err := f.say.check(); err != nil {
		return err
	}
	for _, option := range f.compiler {
		if option != "datatrace_enable" {
			return usageError{fmt.Errorf("there is no compiler option %q; there is datatrace_enable", option)}
		}
		f.options.DataTrace = true
	}
	if f.options.DeleteSets != nil && !f.options.Partial {
		return usageError{fmt.Errorf("--delete-resource-set needs --partial")}
	}
	if f.resources != "" && !f.options.Export {
		return usageError{fmt.Errorf("--resources-json needs --export")}
	}
	if err := chooseCache(&f.options.CacheDir); err != nil {
		return err
	}
	if err := f.limits(); err != nil {
		return err
	}
	f.options.OnOutput = func(_, line string) { fmt.Fprintln(c.ErrOrStderr(), line) }
	if f.options.Python != "" {
		f.options.SitePackages = compiler.PackagesOf(f.options.Python)
	}
	if f.again {
		return f.watch(c)
	}
	_, err := f.once(c)
	return err
}

// once compiles and says what is wrong.
func (f *compileFlags) once(c *cobra.Command) (*compiler.Outcome, error) {
	out := f.compile(c.Context())
	if c.Context().Err() != nil && f.again {
		return out, nil // interrupted: there is nothing to say
	}
	if err := f.write(out); err != nil {
		return out, err
	}
	return out, f.say.outcome(c, out)
}

// limits says when a model that does not end is stopped.
func (f *compileFlags) limits() error {
	if text := os.Getenv("INMANTA_MAX_ITERATIONS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return usageError{fmt.Errorf("INMANTA_MAX_ITERATIONS is %q: it has to be a number above 0", text)}
		}
		f.options.MaxIterations = n
	}
	if f.options.MemoryMax = max(f.memoryMax, f.memoryMiB<<20); f.options.MemoryMax != 0 {
		return nil
	}
	whole, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err == nil && whole > 0 { // a system that does not tell has no limit
		f.options.MemoryMax = whole / 5 * 4
	}
	return nil
}

// write writes the files that were asked for: for a failed compile too, but for
// the resources, of which there are none then.
func (f *compileFlags) write(out *compiler.Outcome) error {
	if err := writeFile(f.exportJSON, out.Document.Write); err != nil {
		return err
	}
	if out.Recipe != nil {
		if err := writeFile(f.recipe, func(w io.Writer) error { return json.NewEncoder(w).Encode(out.Recipe) }); err != nil {
			return err
		}
	}
	model := out.ModelDocument()
	if model.Success {
		if err := writeFile(f.resources, model.WriteResources); err != nil {
			return err
		}
	}
	return writeFile(f.modelJSON, model.Write)
}

func newCheck() *cobra.Command {
	var f struct {
		options compiler.Options
		say     sayer
	}
	c := &cobra.Command{
		Use:   "check",
		Short: "Look for errors in a project without running it",
		Long: "Reads a project and its modules and looks for all errors that can be known without running the model:\n" +
			"syntax, names, types, imports, constructors, indexes, defaults. Plug-ins are imported for what they\n" +
			"take and give, and never called.\n" +
			"Exit status: 0 nothing is wrong as far as can be seen, 1 something is.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.say.check(); err != nil {
				return err
			}
			o := f.options
			o.Check = true
			if err := chooseCache(&o.CacheDir); err != nil {
				return err
			}
			switch {
			case o.Python != "":
				o.SitePackages = compiler.PackagesOf(o.Python)
			case !o.NoPlugins:
				if err := chooseInterpreter(c.Context(), &o); err != nil {
					o.NoPlugins = true
					fmt.Fprintf(c.ErrOrStderr(), "ordain: plug-ins were not looked at: %v\n", err)
				}
			}
			out := compiler.Run(c.Context(), o)
			if err := f.say.outcome(c, out); err != nil || f.say.json() {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "no errors")
			return nil
		},
	}
	flags := c.Flags()
	projectFlags(c, &f.options)
	flags.BoolVar(&f.options.NoPlugins, "no-plugins", false, "leave Python alone: calls of plug-ins are not checked")
	f.say.flag(c)
	return c
}
