package intent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// PipConfig is the `pip` section of project.yml.
type PipConfig struct {
	IndexURL        string   `json:"index_url,omitempty"`
	ExtraIndexURL   []string `json:"extra_index_url,omitempty"`
	Pre             *bool    `json:"pre,omitempty"` // nil: not given
	UseSystemConfig bool     `json:"use_system_config,omitempty"`
}

// Source is one Python file of a module that handlers need.
type SourceFile struct {
	Module string `json:"module"` // dotted Python name, such as inmanta_plugins.fs.resources
	Path   string `json:"path"`   // below the code directory: inmanta_plugins/fs/resources.py
	Hash   string `json:"hash"`   // hex SHA-1 of the content, its name in the file store
}

// ResourceCode is the code that an executor loads to handle one resource type.
type ResourceCode struct {
	Type         string       `json:"type"`         // such as fs::File
	Sources      []SourceFile `json:"sources"`      // sorted by path
	Requirements []string     `json:"requirements"` // pip requirements, sorted
	// Modules are modules of the model that Requirements install as packages, by Python name and sorted. All their
	// Python modules are imported, as Sources are. Only pushed versions have them.
	Modules []string `json:"modules,omitempty"`
	// Constraints limit the versions of packages; sorted. Only pushed versions have them.
	Constraints []string `json:"constraints,omitempty"`
}

// WheelFile is a package, as a file.
type WheelFile struct {
	Name string `json:"name"` // of the file
	Hash string `json:"hash"` // hex SHA-256 of the content
}

// Blueprint is what an executor needs. Equal blueprints share an executor;
// equal first five fields share a virtual environment (per environment).
type Blueprint struct {
	Environment   EnvironmentID `json:"environment"`
	Pip           PipConfig     `json:"pip"`
	Requirements  []string      `json:"requirements"` // sorted, without duplicates
	Constraints   []string      `json:"constraints"`  // sorted
	PythonVersion string        `json:"python"`       // major.minor
	Libc          string        `json:"libc"`         // such as glibc-2.36
	Sources       []SourceFile  `json:"sources,omitempty"`
	// Modules are the Python names of modules of the model that are installed as packages, to be imported; sorted.
	Modules []string `json:"modules,omitempty"`
	// Wheels are the files that the virtual environment is made of, for a machine that asks no index. The
	// requirements say nothing then.
	Wheels []WheelFile `json:"wheels,omitempty"`
	// Runtime is the SHA-256 of the archive of the Python runtime; if it is empty, it is that of the program.
	Runtime string `json:"runtime,omitempty"`

	sealed string // the hash, if Sealed has computed it
}

// VenvHash returns the name of the virtual environment below executors/venvs.
func (b Blueprint) VenvHash() string {
	b.Sources, b.Modules, b.Runtime = nil, nil, ""
	return b.hash()
}

// Sealed returns a copy of the blueprint with its hash computed, for one whose hash
// is needed often. The copy must not be changed.
func (b Blueprint) Sealed() Blueprint {
	b.sealed = b.hash()
	return b
}

// Hash returns the name of the executor, and of its folder below executors/code.
func (b Blueprint) Hash() string {
	if b.sealed != "" {
		return b.sealed
	}
	return b.hash()
}

func (b Blueprint) hash() string {
	b.Requirements = slices.Sorted(slices.Values(b.Requirements))
	b.Constraints = slices.Sorted(slices.Values(b.Constraints))
	b.Sources = slices.Clone(b.Sources)
	slices.SortFunc(b.Sources, func(x, y SourceFile) int {
		if x.Path < y.Path {
			return -1
		}
		if x.Path > y.Path {
			return 1
		}
		return 0
	})
	text, err := json.Marshal(b)
	if err != nil {
		panic("intent: a blueprint is plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:20])
}
