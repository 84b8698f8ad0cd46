package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/pyworker"
)

// DefaultCallTimeout is how long a plug-in may run when Config does not say.
const DefaultCallTimeout = 10 * time.Minute

// Config says which worker to start and what the plug-ins may know.
type Config struct {
	Python     string   // interpreter of the project's virtual environment
	RuntimeDir string   // from pyworker.UnpackRuntime
	Path       []string // further folders for sys.path, such as site-packages of another environment
	ProjectDir string   // folder of project.yml, the working directory of the worker

	ProjectName string
	// Metadata is project.yml, for plug-ins that look at Project.get().metadata.
	Metadata map[string]any
	// Settings are configuration options by section and name: config.environment …
	Settings map[string]map[string]any
	// Facts are values learnt from the outside, by resource id and name.
	Facts map[string]map[string]string

	Env         []string // the environment of the worker; empty: a minimal one
	MemoryMax   uint64
	CallTimeout time.Duration // 0: DefaultCallTimeout
	// OnOutput gets what plug-ins write past sys.stdout: standard error, and
	// what programs that they start print.
	OnOutput func(stream, line string)
}

// Host runs plug-ins in a worker process. It is for one goroutine.
type Host struct {
	config  Config
	started chan struct{} // closed when dialogue or startErr is set
	cancel  context.CancelFunc

	dialogue pyworker.Dialogue
	startErr error
	python   string
	pid      int

	wire    *codec
	heap    eval.Heap
	slots   []eval.Slot // of the running call
	plugins map[*eval.Signature]int
	names   []string
	pending []string // printed while no call ran

	onAnswer func(op string) // for tests: called for every crossing
}

var _ eval.Host = (*Host)(nil)

// Start starts a worker and returns at once; the first request waits for it.
// ctx ends the start only; Close ends the worker.
func Start(ctx context.Context, c Config) *Host {
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Host{config: c, started: make(chan struct{}), cancel: cancel}
	h.wire = newCodec(h)
	go func() {
		defer close(h.started)
		h.dialogue, h.startErr = pyworker.StartDialogue(ctx, pyworker.Config{
			Python:     c.Python,
			Role:       "compile",
			RuntimeDir: c.RuntimeDir,
			Path:       c.Path,
			Dir:        c.ProjectDir,
			Env:        c.Env,
			MemoryMax:  c.MemoryMax,
			OnOutput:   c.OnOutput,
		})
		if h.startErr != nil {
			return
		}
		var reply struct {
			PID    int    `json:"pid"`
			Python string `json:"python"`
		}
		h.startErr = h.dialogue.Ask(ctx, "start", map[string]any{"settings": c.Settings, "facts": c.Facts}, &reply, nil)
		h.pid, h.python = reply.PID, reply.Python
	}()
	return h
}

// Python is the version of the interpreter, such as 3.11.7; empty when it
// could not be started.
func (h *Host) Python() string {
	<-h.started
	return h.python
}

// Close ends the worker. It may be called at any time, by any goroutine that
// knows that no request runs.
func (h *Host) Close() error {
	h.cancel()
	<-h.started
	if h.dialogue == nil {
		return nil
	}
	return h.dialogue.Close(2 * time.Second)
}

// TakeOutput gives the lines that were printed outside of calls: while modules
// were imported and by finalizers.
func (h *Host) TakeOutput() []string {
	lines := h.pending
	h.pending = nil
	return lines
}

// LoadError says that the Python side of a module cannot be used.
type LoadError struct {
	eval.PluginError
	Missing string // the module that was not found, for a ModuleNotFoundError
}

// Error implements error.
func (e *LoadError) Error() string {
	text := "Unable to load all plug-ins: " + e.Class + ": " + e.Message
	if e.File != "" {
		text += fmt.Sprintf(" (%s:%d)", e.File, e.Line)
	}
	return text
}

// Raised is the exception.
func (e *LoadError) Raised() *eval.PluginError { return &e.PluginError }

// Hint says what to do about it.
func (e *LoadError) Hint() string {
	if e.Missing != "" && !strings.HasPrefix(e.Missing, "inmanta") {
		return fmt.Sprintf("the package that provides %q is not installed in the project's virtual environment: name it among the requirements of the module", e.Missing)
	}
	return ""
}

// Load implements eval.Host. An exception in a module's Python code is a *LoadError.
func (h *Host) Load(modules []eval.ModuleCode) (*eval.Loaded, error) {
	type module struct {
		Name  string   `json:"name"`
		Root  string   `json:"root"`
		Dir   string   `json:"dir,omitempty"`
		Files []string `json:"files,omitempty"`
	}
	request := struct {
		Project  string         `json:"project"`
		Name     string         `json:"name"`
		Metadata map[string]any `json:"metadata,omitempty"`
		Modules  []module       `json:"modules"`
	}{Project: h.config.ProjectDir, Name: h.config.ProjectName, Metadata: h.config.Metadata, Modules: []module{}}
	for _, m := range modules {
		request.Modules = append(request.Modules, module(m))
	}
	var reply struct {
		Plugins     []*signature     `json:"plugins"`
		Dataclasses []eval.Dataclass `json:"dataclasses"`
		Warnings    []struct {
			Message string `json:"message"`
			File    string `json:"file"`
			Line    int32  `json:"line"`
		} `json:"warnings"`
		Output []string   `json:"output"`
		Error  *exception `json:"error"`
	}
	if err := h.ask("load", request, &reply, "importing the modules' Python code"); err != nil {
		return nil, err
	}
	h.pending = append(h.pending, reply.Output...)
	if reply.Error != nil {
		return nil, &LoadError{PluginError: reply.Error.pluginError(), Missing: reply.Error.Missing}
	}
	loaded := &eval.Loaded{Dataclasses: reply.Dataclasses}
	h.plugins = map[*eval.Signature]int{}
	h.names = nil
	for i, s := range reply.Plugins {
		made := s.signature()
		h.plugins[made] = i
		h.names = append(h.names, made.Name)
		loaded.Plugins = append(loaded.Plugins, made)
	}
	for _, w := range reply.Warnings {
		at := syntax.Span{File: &syntax.File{Path: w.File}, Start: syntax.Pos{Line: w.Line, Col: 1}, End: syntax.Pos{Line: w.Line, Col: 1}, Coarse: true}
		loaded.Warnings = append(loaded.Warnings, syntax.Warning{Kind: "inmanta.warnings.InmantaWarning", Message: w.Message, At: at})
	}
	return loaded, nil
}

// Finalize implements eval.Host.
func (h *Host) Finalize() error {
	var reply struct {
		Output []string   `json:"output"`
		Error  *exception `json:"error"`
	}
	if err := h.ask("finalize", nil, &reply, "a finalizer"); err != nil {
		return err
	}
	h.pending = append(h.pending, reply.Output...)
	if reply.Error != nil {
		return fmt.Errorf("a finalizer failed: %s: %s", reply.Error.Class, reply.Error.Message)
	}
	return nil
}

// HangError says that Python code did not come back in time.
type HangError struct {
	What  string
	After time.Duration
	Stack string // the worker's own account of where it was
}

// Error implements error.
func (e *HangError) Error() string {
	text := fmt.Sprintf("%s did not return within %s and was stopped", e.What, e.After)
	if e.Stack != "" {
		text += "; it was here:\n" + e.Stack
	}
	return text
}

// grace is how long a worker that hangs gets to tell its stack.
const grace = 500 * time.Millisecond

// ask sends a request and answers what Python wants to know meanwhile. When it
// takes too long the worker is told to print its stack and then killed.
func (h *Host) ask(op string, args, reply any, what string) error {
	<-h.started
	if h.startErr != nil {
		return h.startErr
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	hang := &HangError{What: what, After: h.config.CallTimeout}
	warn := time.AfterFunc(h.config.CallTimeout, func() { _ = syscall.Kill(h.pid, syscall.SIGUSR1) })
	defer warn.Stop()
	kill := time.AfterFunc(h.config.CallTimeout+grace, func() { cancel(hang) })
	defer kill.Stop()
	err := h.dialogue.Ask(ctx, op, args, reply, h.answer)
	if err != nil && errors.Is(context.Cause(ctx), hang) {
		hang.Stack = moduleFrames(h.dialogue.LastWords())
		return hang
	}
	return err
}

// Is makes errors.Is compare hangs by identity.
func (e *HangError) Is(target error) bool { return error(e) == target }

// moduleFrames cuts what faulthandler prints down to the frames of modules.
func moduleFrames(words string) string {
	var kept []string
	for line := range strings.Lines(words) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  File ") && !strings.Contains(line, "/ordain_worker/") && !strings.Contains(line, "<frozen") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// exception is what the worker tells of one.
type exception struct {
	Kind    string `json:"kind"`
	Class   string `json:"class"`
	Message string `json:"message"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Trace   string `json:"trace"`
	Missing string `json:"missing"`
}

func (e *exception) pluginError() eval.PluginError {
	return eval.PluginError{Kind: e.Kind, Class: e.Class, Message: e.Message, File: e.File, Line: e.Line, Trace: e.Trace}
}

// signature is eval.Signature as the worker writes it.
type signature struct {
	Name   string `json:"name"`
	Params []struct {
		Name    string           `json:"name"`
		Kind    eval.ParamKind   `json:"kind"`
		Type    *eval.Annotation `json:"type"`
		Default bool             `json:"default"`
	} `json:"params"`
	Return       *eval.Annotation `json:"return"`
	AllowUnknown bool             `json:"allow_unknown"`
	Deprecated   bool             `json:"deprecated"`
	ReplacedBy   string           `json:"replaced_by"`
	File         string           `json:"file"`
	Line         int              `json:"line"`
}

func (s *signature) signature() *eval.Signature {
	made := &eval.Signature{
		Name: s.Name, Return: s.Return, AllowUnknown: s.AllowUnknown,
		Deprecated: s.Deprecated, ReplacedBy: s.ReplacedBy, File: s.File, Line: s.Line,
	}
	for _, p := range s.Params {
		made.Params = append(made.Params, eval.Param{Name: p.Name, Kind: p.Kind, Type: p.Type, HasDefault: p.Default})
	}
	return made
}

// Request is for package export: it asks the worker while heap answers what
// Python reads. An exception in Python code is a *RequestError.
func (h *Host) Request(op string, args, reply any, heap eval.Heap, what string) error {
	h.heap, h.slots = heap, nil
	h.wire.begin()
	defer func() { h.heap = nil }()
	var raw json.RawMessage
	if err := h.ask(op, args, &raw, what); err != nil {
		return err
	}
	var common struct {
		Output []string   `json:"output"`
		Error  *exception `json:"error"`
	}
	if err := json.Unmarshal(raw, &common); err != nil {
		return fmt.Errorf("plugin: reply to %s: %w", op, err)
	}
	h.pending = append(h.pending, common.Output...)
	if common.Error != nil {
		return &RequestError{PluginError: common.Error.pluginError()}
	}
	if err := json.Unmarshal(raw, reply); err != nil {
		return fmt.Errorf("plugin: reply to %s: %w", op, err)
	}
	return nil
}

// RequestError is an exception that Python code raised during an export.
type RequestError struct{ eval.PluginError }

// Error implements error.
func (e *RequestError) Error() string { return e.Message }
