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

// warmDescriptor is the file descriptor at which a server passes the socket of a template process.
const warmDescriptor = 3

// compileFlags holds the options of `ordain compile`.
type compileFlags struct {
	options    compiler.Options
	modelJSON  string
	exportJSON string
	resources  string // file for the resources alone
	recipe     string // file for the recipe of the next compile's template process
	compiler   []string
	memoryMax  uint64 // bytes
	memoryMiB  uint64
	clusters   string // file with the clusters that the model sees
	watchFiles bool   // compile again on every save
	printer    printer
}

func newCompile() *cobra.Command {
	var f compileFlags
	c := &cobra.Command{
		Use:   "compile [-]",
		Short: "Compile a project",
		Long: "Compiles the project in a folder and prints its errors. With --export it also builds the resources,\n" +
			"without a server. With - it reads a compile job from standard input, as the server writes it; then\n" +
			"it takes no options.\n" +
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
	flags.BoolVar(&f.options.Export, "export", false, "also build the resources")
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
	flags.StringVar(&f.clusters, "clusters", "", "JSON file with the clusters that the module ordain sees")
	flags.BoolVar(&f.watchFiles, "watch", false, "compile again whenever a file is saved, until it is interrupted")
	f.printer.flag(c)
	return c
}

// readJob reads the options from a compile job on standard input.
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
	o.Clusters = j.Clusters
	f.printer.live = newLivePrinter(c.OutOrStdout())
	o.OnPrint = f.printer.live.line
	f.exportJSON, f.recipe, f.memoryMax = j.ExportFile, j.RecipeFile, j.MemoryMax
	if j.WarmKey != "" {
		syscall.CloseOnExec(warmDescriptor)
		o.Warm = &plugin.Warm{Handover: os.NewFile(warmDescriptor, "handover"), Key: j.WarmKey}
	}
	return nil
}

// maxClusters bounds the size of a file with clusters, in bytes.
const maxClusters = 64 << 20

// readClusters reads a file with clusters by name, for a compile without a server.
func readClusters(path string) (plugin.Clusters, error) {
	const op, hint = "cli.readClusters", "it is an object with one object for each cluster; see docs/models.md"
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxClusters+1))
	if err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err)
	}
	if len(text) > maxClusters {
		return nil, fault.New(op, fault.Invalid, fmt.Sprintf("%s is larger than %d MiB", path, maxClusters>>20))
	}
	var objects map[string]struct {
		Nodes []struct{ Number *int }
	}
	clusters := plugin.Clusters{}
	if err := errors.Join(json.Unmarshal(text, &objects), json.Unmarshal(text, &clusters)); err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err).Say(path + " does not have clusters as JSON").Hint(hint)
	}
	for name, cluster := range objects {
		for i, node := range cluster.Nodes {
			if node.Number == nil {
				return nil, fault.New(op, fault.Invalid,
					fmt.Sprintf("%s: node %d of the cluster %s has no number", path, i+1, name)).Hint(hint)
			}
		}
	}
	return clusters, nil
}

// projectFlags adds the flags that say what to compile, and with which interpreter.
func projectFlags(c *cobra.Command, o *compiler.Options) {
	flags := c.Flags()
	flags.StringVar(&o.Project, "project", projectHere(), "folder with project.yml")
	flags.StringVar(&o.Main, "main", "", "entry file, relative to the project or absolute (default main.cf)")
	flags.BoolVar(&o.NoStd, "no-std", false, "do not import std implicitly")
	flags.StringVar(&o.Python, "python", "", "interpreter for plug-ins (default: that of the project's .env)")
	flags.StringVar(&o.CacheDir, "cache-dir", "", "folder for what can be made again")
}

// projectHere returns the folder of the project that the working directory is in:
// the working directory itself or the nearest folder above it that has a project.yml.
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

// compile compiles the project. If there is no interpreter, that is an error of
// the compile and appears in the result files like any other.
func (f *compileFlags) compile(ctx context.Context) *compiler.Outcome {
	o := f.options // a copy: with --watch, the next compile may need another interpreter
	if f.clusters != "" {
		clusters, err := readClusters(f.clusters)
		if err != nil {
			return compiler.Failed(err)
		}
		o.Clusters = clusters
	}
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
	if err := f.printer.check(); err != nil {
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
	if f.watchFiles {
		return f.watch(c)
	}
	_, err := f.once(c)
	return err
}

// once compiles, writes the files that were asked for, and prints the outcome.
func (f *compileFlags) once(c *cobra.Command) (*compiler.Outcome, error) {
	out := f.compile(c.Context())
	if c.Context().Err() != nil && f.watchFiles {
		return out, nil // interrupted: there is nothing to print
	}
	if err := f.write(out); err != nil {
		return out, err
	}
	return out, f.printer.outcome(c, out)
}

// limits sets when a model that does not end is stopped, and how much memory it may use.
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
	if err == nil && whole > 0 { // no limit if the system does not report its memory
		f.options.MemoryMax = whole / 5 * 4
	}
	return nil
}

// write writes the files that were asked for. A failed compile has no resources to write.
func (f *compileFlags) write(out *compiler.Outcome) error {
	if err := writeFile(f.exportJSON, out.Document.Write); err != nil {
		return err
	}
	if out.Recipe != nil {
		if err := writeFile(f.recipe,
			func(w io.Writer) error { return json.NewEncoder(w).Encode(out.Recipe) }); err != nil {
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
		printer printer
	}
	c := &cobra.Command{
		Use:   "check",
		Short: "Look for errors in a project without running it",
		Long: "Reads a project and its modules and looks for all errors that can be found without running the\n" +
			"model: syntax, names, types, imports, constructors, indexes, defaults. Plug-ins are imported for\n" +
			"their signatures, and never called.\n" +
			"Exit status: 0 no error was found, 1 there are errors.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.printer.check(); err != nil {
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
					fmt.Fprintf(c.ErrOrStderr(), "ordain: plug-ins were not checked: %v\n", err)
				}
			}
			out := compiler.Run(c.Context(), o)
			if err := f.printer.outcome(c, out); err != nil || f.printer.json() {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "no errors")
			return nil
		},
	}
	flags := c.Flags()
	projectFlags(c, &f.options)
	flags.BoolVar(&f.options.NoPlugins, "no-plugins", false, "do not run Python: calls of plug-ins are not checked")
	f.printer.flag(c)
	return c
}
