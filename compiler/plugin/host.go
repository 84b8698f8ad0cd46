package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/internal/python/worker"
)

// DefaultCallTimeout is how long a plug-in may run when Config does not say.
const DefaultCallTimeout = 10 * time.Minute

// Config says which worker to start and what the plug-ins may know.
type Config struct {
	Python     string   // interpreter of the project's virtual environment
	RuntimeDir string   // from runtime.Unpack
	Path       []string // further folders for sys.path, such as site-packages of another environment
	ProjectDir string   // folder of project.yml, the working directory of the worker

	ProjectName string
	// Metadata is project.yml, for plug-ins that look at Project.get().metadata.
	Metadata map[string]any
	// ModulePath are the folders with modules of the first generation, in which
	// their Python is found: also of those that the model does not load.
	ModulePath []string
	// AutoStd: every file imports std.
	AutoStd bool
	// About tells what the files in the folder of a module say of it, when Python
	// code looks at that; nil: nothing.
	About func(root string) (*module.About, error)
	// Settings are configuration options by section and name: config.environment …
	Settings map[string]map[string]any
	// Known is what the server knows; nil where there is none.
	Known *Known

	Env         []string // the environment of the worker; empty: a minimal one
	MemoryMax   uint64
	CallTimeout time.Duration // 0: DefaultCallTimeout
	// CacheDir keeps what loads told; empty: nowhere.
	CacheDir string
	// Warm is a template to copy where that makes no difference; nil: none.
	Warm *Warm
	// OnOutput gets what plug-ins write past sys.stdout: standard error, and
	// what programs that they start print.
	OnOutput func(stream, line string)
}

// Known is what a server knows that plug-ins may ask for, as it travels from
// the server to the compiler and on to the worker.
type Known struct {
	Environment Environment `json:"environment"`
	// Facts are facts by resource id and name; parameters of the environment
	// are those of no resource.
	Facts map[string]map[string]string `json:"facts"`
}

// Environment is the environment that is compiled for.
type Environment struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Project string `json:"project_id"`
}

// Host runs plug-ins in a worker process. It is for one goroutine.
type Host struct {
	config Config
	ctx    context.Context // for the start of the worker
	cancel context.CancelFunc
	alive  context.Context // until Close does not wait for a request any more
	giveUp context.CancelFunc
	begin  sync.Once
	began  bool          // Begin was called
	came   chan struct{} // closed when dialogue or startErr is set

	dialogue worker.Dialogue
	asked    atomic.Bool // where the worker is, because it takes too long
	startErr error
	python   string
	pid      int

	modules    []moduleCode
	key        string // of the load; empty when it cannot be kept
	table      *table // what the load would tell: the worker has not been asked
	remembered bool   // the table is from an earlier load
	kept       *table // the table that the next compile will find; valid after Close
	noCode     bool   // no module has Python code
	adopts     bool   // the worker will be a copy of the template
	adopted    bool   // it is one
	// anticipated: the worker will probably be needed, and starts as soon as it
	// is known whether it can be a copy.
	anticipated bool
	loaded      bool          // the worker was asked to load, or is about to be
	preloaded   chan struct{} // closed when the worker has loaded what a table says; nil while it was not asked
	loadErr     error         // of the same
	heard       bool          // what was printed meanwhile was looked at
	keeping     sync.WaitGroup
	used        map[string]bool // modules of which something was used

	wire       *codec
	heap       eval.Heap
	slots      []eval.Slot // of the running call
	posted     posted
	plugins    map[*eval.Signature]int
	raw        []json.RawMessage // the signatures as the worker wrote them
	introduced []bool            // plug-ins that the worker was told of
	pending    []string          // printed while no call ran
	printed    []string          // by what runs now
	warned     []string          // of deprecated plug-ins that were called while no call ran

	onAnswer func(op string) // for tests: called for every crossing
}

var (
	_ eval.Host  = (*Host)(nil)
	_ eval.Twins = (*Host)(nil)
)

// New makes a host whose worker starts when something needs it, or with Begin.
// ctx is for the start of the worker only; Close ends it.
func New(ctx context.Context, c Config) *Host {
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Host{
		config:  c,
		ctx:     ctx,
		cancel:  cancel,
		came:    make(chan struct{}),
		used:    map[string]bool{},
		plugins: map[*eval.Signature]int{},
	}
	h.alive, h.giveUp = context.WithCancel(context.Background())
	h.wire = newCodec(h)
	return h
}

// Start makes a host and starts its worker. It returns at once; the first
// request waits for the worker.
func Start(ctx context.Context, c Config) *Host {
	h := New(ctx, c)
	h.Begin()
	return h
}

// Begin starts the worker, which gets ready while the caller does something
// else. It does nothing when the worker was started before.
func (h *Host) Begin() {
	h.begin.Do(func() {
		h.began = true
		go h.start(h.adopts)
	})
	h.preload()
}

// Anticipate starts the worker when it probably will be needed: when the
// project needed one the last time, or nothing is known of it.
func (h *Host) Anticipate() {
	if h.config.CacheDir != "" {
		if known := h.tables().habit(h.config.ProjectDir); known != nil && len(known.Used) == 0 {
			return
		}
	}
	if h.config.Warm != nil {
		h.anticipated = true
		return
	}
	h.Begin()
}

func (h *Host) tables() tables { return tables{filepath.Join(h.config.CacheDir, "plugins")} }

// start gets the worker, as a copy of the template if adopt says so.
func (h *Host) start(adopt bool) {
	defer close(h.came)
	if adopt {
		if h.adopt() == nil {
			h.adopted = true
			return
		}
		if h.dialogue != nil {
			_ = h.dialogue.Close(0)
		}
	}
	h.startErr = h.meet(func(c worker.Config) (worker.Dialogue, error) { return worker.StartDialogue(h.ctx, c) })
}

func (h *Host) adopt() error {
	return h.meet(func(c worker.Config) (worker.Dialogue, error) {
		return worker.Adopt(h.ctx, h.config.Warm.Handover, c)
	})
}

// meet makes a worker and tells it what there is to know.
func (h *Host) meet(begin func(worker.Config) (worker.Dialogue, error)) error {
	c := h.config
	dialogue, err := begin(worker.Config{
		Python:     c.Python,
		Role:       "compile",
		RuntimeDir: c.RuntimeDir,
		Path:       c.Path,
		Dir:        c.ProjectDir,
		Env:        c.Env,
		MemoryMax:  c.MemoryMax,
		OnOutput:   h.withoutStacks(c.OnOutput),
		OnNotice:   h.noticed,
	})
	if err != nil {
		return err
	}
	var reply struct {
		PID    int    `json:"pid"`
		Python string `json:"python"`
	}
	h.dialogue = dialogue
	err = dialogue.Ask(h.ctx, "start", map[string]any{"settings": c.Settings, "known": c.Known}, &reply, nil)
	h.pid, h.python = reply.PID, reply.Python
	return err
}

// preload has a worker that was started import what cannot wait, where a table
// says what that is.
func (h *Host) preload() {
	if !h.remembered || h.loaded || !h.began {
		return
	}
	h.loaded = true
	h.preloaded = make(chan struct{})
	go func() {
		defer close(h.preloaded)
		h.loadErr = h.loadLazily()
	}()
}

// Python is the version of the interpreter, such as 3.11.7; empty when it
// could not be started.
func (h *Host) Python() string {
	if h.remembered {
		return h.table.Python
	}
	if !h.began {
		return ""
	}
	<-h.came
	return h.python
}

// Interrupt ends what the worker does now, and the worker: nobody waits for its
// answer any more. It may be called at any time.
func (h *Host) Interrupt() { h.giveUp() }

// Close ends the worker. It may be called at any time, by any goroutine that
// knows that no request runs.
func (h *Host) Close() error {
	h.cancel()
	h.keeping.Wait()
	h.keepHabit()
	if !h.began {
		return nil
	}
	<-h.came
	if h.dialogue == nil {
		return nil
	}
	if h.preloaded != nil {
		h.giveUp() // imports that nobody waited for
		<-h.preloaded
	}
	return h.dialogue.Close(2 * time.Second)
}

// keepHabit remembers what was needed, for Anticipate.
func (h *Host) keepHabit() {
	if h.key == "" {
		return
	}
	s := h.tables()
	now := &habit{Used: slices.Sorted(maps.Keys(h.used))}
	if before := s.habit(h.config.ProjectDir); before == nil || !slices.Equal(before.Used, now.Used) {
		s.writeHabit(h.config.ProjectDir, now)
	}
}

// TakeOutput gives the lines that were printed outside of calls: while modules
// were imported and by finalizers.
func (h *Host) TakeOutput() []string {
	lines := h.pending
	h.pending = nil
	return lines
}

// TakeWarnings gives what was told of deprecated plug-ins outside of calls: by
// finalizers and an export.
func (h *Host) TakeWarnings() []string {
	warned := h.warned
	h.warned = nil
	return warned
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
	if err := h.awake(); err != nil {
		return err
	}
	h.settle()
	return h.request(op, args, reply, what)
}

// awake waits until the worker can be asked.
func (h *Host) awake() error {
	h.Begin()
	<-h.came
	if h.startErr != nil {
		return h.startErr
	}
	if h.preloaded != nil {
		<-h.preloaded
		if !h.heard {
			h.heard = true
			h.said(h.loadErr)
		}
		return h.loadErr
	}
	return nil
}

// request is ask for a worker that is there.
func (h *Host) request(op string, args, reply any, what string) error {
	return h.guarded(what, func(ctx context.Context) error { return h.dialogue.Ask(ctx, op, args, reply, h.answer) })
}

// noticed keeps what is printed until the reply comes that has it too.
func (h *Host) noticed(op string, args json.RawMessage) {
	var told struct {
		Lines []string `json:"lines"`
	}
	if op == "printed" && len(h.printed) < mostPrinted && json.Unmarshal(args, &told) == nil {
		h.printed = append(h.printed, told.Lines...)
	}
}

// mostPrinted bounds the lines that are kept for the case that the worker dies.
const mostPrinted = 10_000

// guarded ends the worker when what it does takes too long.
func (h *Host) guarded(what string, do func(ctx context.Context) error) error {
	err := h.within(h.config.CallTimeout, what, do)
	h.said(err)
	return err
}

func (h *Host) within(limit time.Duration, what string, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(h.alive)
	defer cancel(nil)
	hang := &HangError{What: what, After: limit}
	warn := time.AfterFunc(limit, func() {
		h.asked.Store(true)
		_ = syscall.Kill(h.pid, syscall.SIGUSR1)
	})
	defer warn.Stop()
	kill := time.AfterFunc(limit+grace, func() { cancel(hang) })
	defer kill.Stop()
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), hang) {
		hang.Stack = moduleFrames(h.dialogue.LastWords(), h.config.RuntimeDir)
		return hang
	}
	return err
}

// said drops what was printed while something ran: its reply has it too, unless
// it failed and none comes.
func (h *Host) said(err error) {
	if err != nil {
		h.pending = append(h.pending, h.printed...)
	}
	h.printed = nil
}

// Is makes errors.Is compare hangs by identity.
func (e *HangError) Is(target error) bool { return error(e) == target }

// exception is what the worker tells of one.
type exception struct {
	Kind    string  `json:"kind"`
	Class   string  `json:"class"`
	Message string  `json:"message"`
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Trace   string  `json:"trace"`
	Missing string  `json:"missing"`
	Unread  *[3]any `json:"unread"` // file, line, column of a syntax error
	// Of a compiler exception: the place in the model that it names, and its causes.
	At     *[3]any      `json:"at"` // file, line, column
	Causes []*exception `json:"causes"`
	Hint   string       `json:"hint"`  // the notes of the exception
	Cause  *exception   `json:"cause"` // what an ExternalException wraps

	Module    string `json:"module"`
	Importing string `json:"importing"`
}

func (e *exception) pluginError() eval.PluginError {
	made := eval.PluginError{
		Kind:    e.Kind,
		Class:   e.Class,
		Message: e.Message,
		File:    e.File,
		Line:    e.Line,
		Unread:  span(e.Unread),
		At:      span(e.At),
		Trace:   e.Trace,
		Notes:   e.Hint,
	}
	if e.Cause != nil {
		wrapped := e.Cause.pluginError()
		made.Wrapped = &wrapped
	}
	for _, cause := range e.Causes {
		made.Causes = append(made.Causes, cause.pluginError())
	}
	return made
}

// span is a place that the worker wrote as file, line and column; nil for none.
func span(place *[3]any) *syntax.Span {
	if place == nil {
		return nil
	}
	file, _ := place[0].(string)
	line, _ := place[1].(float64)
	column, _ := place[2].(float64)
	at := syntax.Pos{Line: int32(line), Col: int32(max(column, 1))}
	return &syntax.Span{File: &syntax.File{Path: file}, Start: at, End: at}
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
	Emits        bool             `json:"emits"`
	Deprecated   bool             `json:"deprecated"`
	ReplacedBy   string           `json:"replaced_by"`
	Context      [3]any           `json:"context"` // position (below zero: none), name, keyword only
	File         string           `json:"file"`
	Line         int              `json:"line"`
}

func (s *signature) signature() *eval.Signature {
	made := &eval.Signature{
		Name: s.Name, Return: s.Return, AllowUnknown: s.AllowUnknown, Emits: s.Emits,
		Deprecated: s.Deprecated, ReplacedBy: s.ReplacedBy, File: s.File, Line: s.Line,
	}
	at, _ := s.Context[0].(float64)
	made.Context = s.Context[0] == nil || at >= 0
	if only, _ := s.Context[2].(bool); only {
		made.ContextKeyword, _ = s.Context[1].(string)
	}
	for _, p := range s.Params {
		made.Params = append(made.Params, eval.Param{Name: p.Name, Kind: p.Kind, Type: p.Type, HasDefault: p.Default})
	}
	return made
}

// Request is for package export: it asks the worker while heap answers what
// Python reads. An exception in Python code is a *RequestError.
func (h *Host) Request(op string, args, reply any, heap eval.Heap, what string) error {
	raw, known := h.known(op, args)
	if !known {
		h.note(args)
		if err := h.awake(); err != nil {
			return err
		}
		h.settle()
		h.heap, h.slots = heap, nil
		h.wire.begin()
		defer func() { h.heap = nil }()
		if err := h.request(op, args, &raw, what); err != nil {
			return err
		}
	}
	var common struct {
		Output []string   `json:"output"`
		Error  *exception `json:"error"`
		Warn   []string   `json:"warn"`
	}
	if err := json.Unmarshal(raw, &common); err != nil {
		return fmt.Errorf("plugin: reply to %s: %w", op, err)
	}
	h.pending = append(h.pending, common.Output...)
	h.warned = append(h.warned, common.Warn...)
	if common.Error != nil {
		return &RequestError{PluginError: common.Error.pluginError()}
	}
	if err := json.Unmarshal(raw, reply); err != nil {
		return fmt.Errorf("plugin: reply to %s: %w", op, err)
	}
	return nil
}

// Raised reads an exception in a reply to Request.
func Raised(told json.RawMessage) error {
	var e exception
	if err := json.Unmarshal(told, &e); err != nil {
		return fmt.Errorf("plugin: an exception in a reply: %w", err)
	}
	return &RequestError{PluginError: e.pluginError()}
}

// RequestError is an exception that Python code raised during an export.
type RequestError struct{ eval.PluginError }

// Error implements error.
func (e *RequestError) Error() string { return e.Message }

// env is the environment of the worker.
func (c Config) env() []string {
	if len(c.Env) > 0 {
		return c.Env
	}
	return worker.MinimalEnv()
}
