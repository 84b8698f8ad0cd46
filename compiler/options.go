package compiler

import (
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/plugin"
)

// Options say what to compile and how.
type Options struct {
	Project string // folder with project.yml
	Main    string // entry file; empty: main.cf
	NoStd   bool   // std is not imported implicitly
	// DataTrace: errors of assignments say where the values came from.
	DataTrace bool
	Export    bool // build the resources too
	Partial   bool // export the changed resource sets only
	// DeleteSets are resource sets to remove with a partial export.
	DeleteSets []string
	// ExportFunctions are the names of export functions to run.
	ExportFunctions []string
	// ModelOnly leaves out of an export where fields were set, and hashes: they are for
	// the export's own document only.
	ModelOnly bool
	// Python is the interpreter of the project's virtual environment, for plug-ins.
	// SitePackages, if not nil, replaces the folders of packages of the project's own .env.
	Python       string
	SitePackages []string
	// PythonNote is the hint for a person when plug-ins cannot be loaded, about the
	// interpreter.
	PythonNote string
	// Env is the environment of plug-ins; empty: that of this process.
	Env         []string
	CacheDir    string // for the Python runtime
	Environment string // id of the environment; empty without a server
	// Known is what the server knows and plug-ins may ask for; nil without a server.
	Known *plugin.Known
	// Clusters are those that the module ordain sees.
	Clusters plugin.Clusters
	// Warm is a worker that may be copied; nil: there is none.
	Warm *plugin.Warm
	// OnOutput receives each line that plug-ins write to standard error, when they write it.
	OnOutput func(stream, line string)
	// OnPrint receives each line that plug-ins print to standard output, when they print it; nil: nobody reads along.
	// The document has these lines too.
	OnPrint func(line string)
	// OnStage is called at the end of each stage of a compile: open, parse,
	// evaluate, export.
	OnStage func(name string)
	// PluginTimeout is how long a plug-in may run; 0: plugin.DefaultCallTimeout.
	PluginTimeout time.Duration
	// MaxIterations and MemoryMax (bytes) stop a model that does not end: see
	// eval.Input.
	MaxIterations int
	MemoryMax     uint64

	// Check only looks for errors: nothing is run and nothing exported.
	Check bool
	// NoPlugins, with Check, does not use Python: every plug-in is assumed to exist.
	NoPlugins bool

	onCompile func() // for tests: called in the compile, to fail
}

// Outcome is the result of a compile.
type Outcome struct {
	Result   *eval.Result // nil when the files could not be read
	Document *export.Document
	// Text is the text for a person when the compile failed.
	Text string
	// Folders are the folders of the loaded modules and of their plug-ins.
	Folders []string

	// Recipe says how to make a template for the next compile; nil when it
	// would be of no use.
	Recipe *plugin.Recipe

	exported bool // Options had Export
	crashed  bool // the compiler itself failed: the document has the stack
}
