// Package job is the compile job that a server hands to its compiler process:
//
//	server/build ──Job as JSON──▶ standard input of `ordain compile -`
//	             ◀──export, recipe── files in the job's own folder
//
// Both sides import this one definition, so that what one writes is what the
// other reads. A job goes through standard input and not through arguments:
// facts may be large, and everybody on a machine can read arguments.
package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"ordain.dev/ordain/compiler/plugin"
)

// Job says what to compile, with what, and where to put the results. All paths
// are absolute.
type Job struct {
	Project     string `json:"project"`     // folder with project.yml
	Python      string `json:"python"`      // interpreter of the project's virtual environment
	CacheDir    string `json:"cache_dir"`   // for files that can be made again
	Environment string `json:"environment"` // id of the environment that the model is for

	// Partial exports only the resource sets that the model has, and removes
	// those in RemovedSets.
	Partial     bool     `json:"partial,omitempty"`
	RemovedSets []string `json:"removed_sets,omitempty"`

	// Known holds the facts and parameters that plug-ins may ask for.
	Known plugin.Known `json:"known"`
	// Clusters are the environment's clusters, for the module ordain.
	Clusters plugin.Clusters `json:"clusters,omitempty"`

	// MemoryMax is how many bytes the compile may use; 0 lets the compiler
	// decide from the memory of the machine or container.
	MemoryMax uint64 `json:"memory_max,omitempty"`

	// WarmKey is the key of the template process whose socket is the first
	// extra file of the compiler process; empty when there is none.
	WarmKey string `json:"warm_key,omitempty"`

	// ExportFile gets the document that the server stores. RecipeFile gets the
	// recipe of a template for the next compile.
	ExportFile string `json:"export_file"`
	RecipeFile string `json:"recipe_file"`
}

// maxSize is the size in bytes of the largest job that is read: facts and
// parameters of an environment, which the store bounds, make up most of it.
const maxSize = 256 << 20

// Write writes the job for Read.
func (j Job) Write(w io.Writer) error { return json.NewEncoder(w).Encode(j) }

// Read reads one job and checks that it is complete.
func Read(r io.Reader) (Job, error) {
	var j Job
	limited := &io.LimitedReader{R: r, N: maxSize + 1}
	decoder := json.NewDecoder(limited)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&j)
	switch {
	case limited.N <= 0:
		return Job{}, fmt.Errorf("the compile job is larger than %d MiB", maxSize>>20)
	case errors.Is(err, io.EOF):
		return Job{}, errors.New("there is no compile job on standard input")
	case err != nil:
		return Job{}, fmt.Errorf("the compile job on standard input cannot be read: %w", err)
	}
	for name, path := range map[string]string{
		"project": j.Project, "python": j.Python, "cache_dir": j.CacheDir, "export_file": j.ExportFile,
		"recipe_file": j.RecipeFile,
	} {
		if !filepath.IsAbs(path) {
			return Job{}, fmt.Errorf("the compile job's %s has to be an absolute path, and is %q", name, path)
		}
	}
	return j, nil
}
