package build

import (
	"encoding/json"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
)

// Job is one compile as the builder sees it.
type Job struct {
	Environment intent.Environment
	Compile     intent.Compile
	Dir         string // the checkout
	ProjectDir  string // the folder with project.yml: Dir or one below it
	// Parameters are the parameters and facts that plug-ins may ask for.
	Parameters []intent.Parameter
	// Clusters are what the model may see of the environment's clusters, by name.
	Clusters map[string]json.RawMessage
	// Source is the environment's repository. Its credentials are lent to
	// modules that lie in repositories of the same host.
	Source gitsync.Source
	// Modules is called with the repositories of the modules that the project
	// uses, by name of the module; it may be nil.
	Modules func(urls map[string]string)
	// Preview compiles in the environment's preview folder, beside its own compiles.
	Preview bool
}

// Output receives what a stage prints, while it prints.
type Output func(stdout, stderr string)
