package program

import (
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/syntax"
)

// Unload makes a compile do without Python: it does not ask which plug-ins there
// are.
func (in *Input) Unload() {
	in.Host, in.Unloaded = nil, map[string]bool{}
	for _, m := range in.Modules {
		if len(m.Files) > 0 {
			in.Unloaded[m.Name] = true
		}
	}
}

// Input is a model to compile.
type Input struct {
	// Files in the order in which their top-level statements are emitted.
	Files []*syntax.File
	// Modules are the Python sides of the loaded modules, in order.
	Modules []ModuleCode
	// Host runs plug-ins; nil means that there are none.
	Host Host
	// MaxIterations limits the rounds of freezing and how many implementations may
	// stand above an instance; 0 means 100,000.
	MaxIterations int
	// MemoryMax is how many bytes the process may use before the compile gives up; 0
	// means no limit.
	MemoryMax uint64
	// Static forbids every call of a plug-in.
	Static bool
	// Lint reports variables that nothing assigns before they are needed: as an
	// error where they certainly will be needed, else as a warning.
	Lint bool
	// Missing are the namespaces whose files could not be read. Names in them are
	// not reported as missing.
	Missing map[string]bool
	// Unloaded are the modules whose Python code was not imported, so that their
	// plug-ins are not known.
	Unloaded map[string]bool
	// DataTrace makes errors of assigning say where the values came from.
	DataTrace bool
	// Precedence is the relation precedence policy of the project.
	Precedence []PrecedenceRule
}

// Warning is a warning of the compiler.
type Warning = syntax.Warning

// ModuleCode is the Python side of one module.
type ModuleCode struct {
	Name    string   // top-level name of the module
	Version string   // as the module says; empty when it does not
	Root    string   // the module's folder, which modules[…]._path shows
	Dir     string   // folder of the Python package; empty when there is none
	Files   []string // Python files, absolute
	// Namespaces are those below the module's own that the model loads. A plug-in in
	// any other namespace does not exist. Compile and Check set this field.
	Namespaces []string
}

// Code returns the Python side of the modules, with the namespaces that the files
// have.
func (in *Input) Code() []ModuleCode {
	below := map[string][]string{}
	for _, f := range in.Files {
		top, _, _ := strings.Cut(f.Namespace, "::")
		for name, qualified := f.Namespace, f.Namespace != top; qualified && name != top; name, _, _ = CutName(name) {
			below[top] = append(below[top], name)
		}
	}
	code := slices.Clone(in.Modules)
	for i := range code {
		names := below[code[i].Name]
		slices.Sort(names)
		code[i].Namespaces = slices.Compact(names)
	}
	return code
}
