package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/internal/python/worker"
)

// moduleCode is eval.ModuleCode as the worker reads it.
type moduleCode struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Root    string   `json:"root"`
	Dir     string   `json:"dir,omitempty"`
	Files   []string `json:"files,omitempty"`
	// Namespaces are those below the module's own that the model loads.
	Namespaces []string `json:"namespaces,omitempty"`
}

// loadRequest is the request "load".
type loadRequest struct {
	Project    string         `json:"project"`
	Name       string         `json:"name"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	AutoStd    bool           `json:"autostd,omitempty"`
	ModulePath []string       `json:"modulepath,omitempty"`
	Modules    []moduleCode   `json:"modules"`
	Record     bool           `json:"record,omitempty"`
	Lazy       *lazyLoad      `json:"lazy,omitempty"`
	Expect     []string       `json:"expect,omitempty"` // modules to import now, though they could wait
}

// lazyLoad names the modules that have to be imported before something of them is used.
type lazyLoad struct {
	Shared []string `json:"shared"`
	Early  []string `json:"early"`
}

// loadReply is the reply to "load".
type loadReply struct {
	Plugins     []json.RawMessage `json:"plugins"`
	Dataclasses []eval.Dataclass  `json:"dataclasses"`
	Warnings    []remark          `json:"warnings"`
	Output      []string          `json:"output"`
	Error       *exception        `json:"error"`
	Table       *recorded         `json:"table"`
}

// LoadError says that the Python side of a module cannot be used.
type LoadError struct {
	eval.PluginError
	Missing string // the module that was not found, for a ModuleNotFoundError
	// Module is the module of the model, and Importing the Python name of its file, whose
	// import failed; empty when all imports succeeded.
	Module, Importing string
	// Others are failures that this one did not cause.
	Others []*LoadError
}

// Further are the failures that this one did not cause.
func (e *LoadError) Further() []error {
	var list []error
	for _, other := range e.Others {
		list = append(list, other)
	}
	return list
}

func loadFailure(e *exception) *LoadError {
	return &LoadError{PluginError: e.pluginError(), Missing: e.Missing, Module: e.Module, Importing: e.Importing}
}

// Error implements error.
func (e *LoadError) Error() string {
	if e.Importing == "" {
		return "Unable to load all plug-ins: " + e.Class + ": " + e.Message
	}
	return fmt.Sprintf("Unable to load all plug-ins for module %s:\n\t%s while loading plugin module %s: %s", e.Module,
		e.Class, e.Importing, e.Message)
}

// Raised is the exception.
func (e *LoadError) Raised() *eval.PluginError { return &e.PluginError }

// Hint suggests a remedy.
func (e *LoadError) Hint() string {
	if e.Missing != "" && !strings.HasPrefix(e.Missing, "inmanta") {
		return fmt.Sprintf(
			"the package that provides %q is not installed in the project's virtual environment: name it among the "+
				"requirements of the module",
			e.Missing,
		)
	}
	return ""
}

// Load implements eval.Host. An exception in a module's Python code is a *LoadError.
//
// When the table of an earlier, equal load is there, no Python runs.
func (h *Host) Load(modules []eval.ModuleCode) (*eval.Loaded, error) {
	if !h.Look(modules) {
		if err := h.load(); err != nil {
			return nil, err
		}
	}
	return h.table.loaded(), nil
}

// Look sets the modules and reports whether Load will need no Python. A worker that has been
// started imports meanwhile what will be needed.
func (h *Host) Look(modules []eval.ModuleCode) bool {
	if h.modules != nil {
		return h.table != nil
	}
	found := h.findTable(modules)
	if h.anticipated && len(h.modules) > 0 && !h.noCode {
		h.Begin()
	}
	return found
}

// findTable looks for the table of an earlier load of the same modules.
func (h *Host) findTable(modules []eval.ModuleCode) bool {
	h.modules = []moduleCode{}
	code := false
	for _, m := range modules {
		h.modules = append(h.modules, moduleCode(m))
		code = code || len(m.Files) > 0
	}
	if !code { // nothing to import
		h.setTable(&table{Export: json.RawMessage(`{}`), Code: map[string][]string{}})
		h.remembered, h.noCode = true, true
		return true
	}
	if h.config.CacheDir == "" {
		return false
	}
	key, err := h.config.key(h.modules)
	if err != nil {
		return false
	}
	h.key = key
	t := h.tables().read(key)
	if t == nil {
		return false
	}
	holds, renewed := t.holds(h.config.env())
	if !holds {
		return false
	}
	if renewed {
		h.keeping.Go(func() { h.tables().write(key, t) })
	}
	h.setTable(t)
	h.remembered, h.kept = true, t
	warm := h.config.Warm
	h.adopts = warm != nil && !h.began && warm.Key == t.fingerprint(key)
	h.preload()
	return true
}

// pluginNames lists the plug-ins in the order in which the modules register them when all are
// imported in turn.
func (h *Host) pluginNames() []string {
	names := []string{}
	if h.table != nil {
		for _, s := range h.table.signatures {
			names = append(names, s.Name)
		}
	}
	return names
}

// setTable makes the host use a table.
func (h *Host) setTable(t *table) {
	h.table, h.raw, h.introduced = t, t.Plugins, make([]bool, len(t.Plugins))
	for i, s := range t.signatures {
		h.plugins[s] = i
	}
}

// load has the worker import all modules, and writes the table of the load.
func (h *Host) load() error {
	var reply loadReply
	began := time.Now()
	h.loaded = true
	request := h.loadRequest()
	request.Record = h.key != ""
	if err := h.ask("load", request, &reply, "importing the modules' Python code"); err != nil {
		return err
	}
	h.pending = append(h.pending, reply.Output...)
	if reply.Error != nil {
		failure := loadFailure(reply.Error)
		failure.Others = h.furtherFailures()
		return failure
	}
	t := &table{Python: h.python, Plugins: reply.Plugins, Dataclasses: reply.Dataclasses, Warnings: reply.Warnings}
	if err := t.parse(); err != nil {
		return fmt.Errorf("plugin: reply to load: %w", err)
	}
	h.setTable(t)
	if request.Record {
		h.keeping.Go(func() {
			if t, err := newTable(&reply, h.python, h.config.env(), began); err == nil {
				h.tables().write(h.key, t)
				h.kept = t
			}
		})
	}
	return nil
}

// forFurther bounds the search for further errors, which imports code that the reference would not
// import after an error.
const forFurther = 5 * time.Second

// furtherFailures are the other modules that cannot be loaded; none when the search fails.
func (h *Host) furtherFailures() []*LoadError {
	var reply struct {
		Errors []*exception `json:"errors"`
	}
	h.searching = true
	defer func() { h.searching = false }()
	err := h.within(
		min(forFurther, h.config.CallTimeout),
		"importing the modules' Python code",
		func(ctx context.Context) error {
			return h.dialogue.Ask(ctx, "load_further", nil, &reply, h.answer)
		},
	)
	h.printed = nil
	if err != nil {
		return nil
	}
	var list []*LoadError
	for _, e := range reply.Errors {
		list = append(list, loadFailure(e))
	}
	return list
}

// loadLazily has the worker import the modules that cannot wait and those that the last compile
// used. It runs beside the compile, so it must not touch the fields that calls use.
func (h *Host) loadLazily() error {
	<-h.started
	if h.startErr != nil {
		return h.startErr
	}
	var expected []string
	if known := h.tables().habit(h.config.ProjectDir); known != nil {
		expected = known.Used
	}
	request := h.lazyRequest(h.table, expected)
	var reply loadReply
	err := h.within(h.config.CallTimeout, "importing the modules' Python code", func(ctx context.Context) error {
		return h.dialogue.Ask(ctx, "load", request, &reply, h.unanswered)
	})
	if err != nil {
		return err
	}
	if reply.Error != nil { // it worked when the table was made, so the table is wrong
		h.tables().forget(h.key)
		return loadFailure(reply.Error)
	}
	return nil
}

// unanswered handles requests of an import that runs in parallel to the compile. It answers none about the model.
func (h *Host) unanswered(op string, args json.RawMessage) (any, error) {
	if op == "imports" || op == "module" {
		return h.onDisk(op, args)
	}
	return nil, &worker.Failure{
		Kind:    "compiler",
		Class:   "RuntimeError",
		Message: "the model can be read only while a plug-in runs",
	}
}

// lazyRequest returns the request that loads the modules of a table, and the expected modules that
// exist.
func (h *Host) lazyRequest(t *table, expected []string) loadRequest {
	request := h.loadRequest()
	request.Lazy = &lazyLoad{Shared: t.Shared, Early: t.Early}
	for _, name := range expected {
		if slices.ContainsFunc(h.modules, func(m moduleCode) bool { return m.Name == name }) {
			request.Expect = append(request.Expect, name)
		}
	}
	return request
}

func (h *Host) loadRequest() loadRequest {
	return loadRequest{
		Project:    h.config.ProjectDir,
		Name:       h.config.ProjectName,
		Metadata:   h.config.Metadata,
		AutoStd:    h.config.AutoStd,
		ModulePath: h.config.ModulePath,
		Modules:    h.modules,
	}
}

// Twin implements eval.Twins.
func (h *Host) Twin(namespace, name string) (eval.Twin, error) {
	var reply struct {
		Found             *eval.Dataclass
		Refused, Nameless *exception
		Output            []string
		Error             *exception
	}
	h.use(namespace)
	request := struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}{namespace, name}
	if err := h.ask("twin", request, &reply, "looking for the dataclass of "+namespace+"::"+name); err != nil {
		return eval.Twin{}, err
	}
	h.pending = append(h.pending, reply.Output...)
	if reply.Error != nil {
		return eval.Twin{}, loadFailure(reply.Error)
	}
	twin := eval.Twin{Found: reply.Found}
	for _, each := range []struct {
		from *exception
		to   **eval.PluginError
	}{{reply.Refused, &twin.Refused}, {reply.Nameless, &twin.Nameless}} {
		if each.from != nil {
			raised := each.from.pluginError()
			*each.to = &raised
		}
	}
	return twin, nil
}

// use records that Python code of a module was used.
func (h *Host) use(name string) {
	name, _, _ = strings.Cut(name, "::")
	h.used[name] = true
}

// useModulesOf records the modules that a request names as used.
func (h *Host) useModulesOf(args any) {
	user, ok := args.(interface{ PythonModules() []string })
	if !ok {
		return
	}
	for _, name := range user.PythonModules() {
		if top := topModule(name); top != "" {
			h.used[top] = true
		}
	}
}

// topModule is the module of the model that a Python module belongs to; empty for others.
func topModule(python string) string {
	rest, ok := strings.CutPrefix(python, "inmanta_plugins.")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// answerFromTable answers a request of an export without Python, if the table allows it.
func (h *Host) answerFromTable(op string, args any) (json.RawMessage, bool) {
	if !h.remembered {
		return nil, false
	}
	switch op {
	case "export_types":
		failed := string(h.table.Export) == "null" // then Python has to raise the exception
		return h.table.Export, len(h.table.Export) > 0 && !failed
	case "export_code":
		wanted, ok := args.(CodeOf)
		if !ok || h.table.Code == nil {
			return nil, false
		}
		found := map[string][]string{}
		for _, name := range wanted.Types {
			modules, ok := h.table.Code[name]
			if !ok {
				return nil, false
			}
			found[name] = modules
		}
		text, err := json.Marshal(map[string]any{"modules": found})
		return text, err == nil
	case "export_files", "export_unknowns": // no Python code ran that could have made any
		return json.RawMessage("{}"), !h.loaded
	}
	return nil, false
}

// CodeOf is the request export_code: resource types.
type CodeOf struct {
	Types []string `json:"types"`
}

// Finalize implements eval.Host. When several finalizers fail, their errors are joined.
func (h *Host) Finalize(heap eval.Heap) error {
	var reply struct {
		Output []string     `json:"output"`
		Errors []*exception `json:"errors"`
		Error  *exception   `json:"error"`
		Warn   []string     `json:"warn"`
	}
	request := struct {
		Modules []string `json:"modules"`
	}{[]string{}}
	if h.remembered {
		if !h.loaded && len(h.table.Finalizers) == 0 {
			return nil
		}
		request.Modules = append(request.Modules, h.table.Finalizers...)
		for _, name := range h.table.Finalizers {
			h.used[topModule(name)] = true
		}
	}
	h.heap, h.slots = heap, nil
	defer func() { h.heap = nil }()
	if err := h.ask("finalize", request, &reply, "a finalizer"); err != nil {
		return err
	}
	h.warned = append(h.warned, reply.Warn...)
	h.pending = append(h.pending, reply.Output...)
	if reply.Error != nil { // the others did not run
		return &finalizerError{reply.Error.pluginError()}
	}
	var failed []error
	for _, each := range reply.Errors {
		failed = append(failed, &finalizerError{each.pluginError()})
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// finalizerError is an exception in a finalizer.
type finalizerError struct{ raised eval.PluginError }

// Error implements error.
func (e *finalizerError) Error() string { return "Finalizer failed: " + e.raised.Message }

// Raised returns the exception.
func (e *finalizerError) Raised() *eval.PluginError { return &e.raised }
