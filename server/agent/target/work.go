package target

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/agent/protocol"
)

// work runs handlers, as the executors of a server do.
type work struct {
	*executor.Manager
	env      intent.EnvironmentID
	contents *contents
	maker    *venv.Maker
	libc     string
	log      *slog.Logger

	mu        sync.Mutex
	sources   map[string]string     // SHA-256 of a handler's source by its SHA-1, as executors name it
	sha1s     map[string]string     // the other way round
	prints    map[string]*blueprint // by the hash that the server gives them
	variables map[string]string     // as the last command had them; in memory only
	plain     []string              // names of those that are no secrets
}

// blueprint is a blueprint as it arrived and as executors have it.
type blueprint struct {
	arrived *protocol.Blueprint
	made    intent.Blueprint
	used    time.Time
}

// refused is why a command cannot be carried out at all.
type refused struct{ why string }

func (r refused) Error() string { return r.why }

// hashes lists the contents that a blueprint refers to.
func hashes(b *protocol.Blueprint) []string {
	out := slices.Collect(maps.Values(b.Files))
	for _, w := range b.Wheels {
		out = append(out, w.Hash)
	}
	if b.Runtime != "" {
		out = append(out, b.Runtime)
	}
	return out
}

// blueprint returns the blueprint for executors.
func (w *work) blueprint(ctx context.Context, b *protocol.Blueprint) (intent.Blueprint, error) {
	if b == nil {
		return intent.Blueprint{}, refused{"the command has no blueprint"}
	}
	if err := w.contents.lacking(hashes(b)); err != nil {
		return intent.Blueprint{}, refused{err.Error()}
	}
	w.mu.Lock()
	known := w.prints[b.Hash]
	if known != nil {
		known.used = time.Now()
	}
	w.mu.Unlock()
	if known != nil && reflect.DeepEqual(known.arrived, b) {
		return known.made, nil
	}
	if _, err := w.python(ctx, b.Python); err != nil {
		return intent.Blueprint{}, refused{"there is no Python " + b.Python + " on this machine: " + err.Error()}
	}
	made := intent.Blueprint{
		Environment: w.env, PythonVersion: b.Python, Libc: w.libc, Wheels: []intent.WheelFile{}, Runtime: b.Runtime,
	}
	if builtIn(b.Runtime) {
		made.Runtime = ""
	}
	modules := map[string]string{}
	for name, file := range b.Modules {
		if file == "" {
			made.Modules = append(made.Modules, name)
			continue
		}
		modules[file] = name
	}
	slices.Sort(made.Modules)
	for _, file := range slices.Sorted(maps.Keys(b.Files)) {
		hash, err := w.sha1(b.Files[file])
		if err != nil {
			return intent.Blueprint{}, refused{err.Error()}
		}
		name := modules[file]
		if name == "" {
			name = moduleOf(file)
		}
		made.Sources = append(made.Sources, intent.SourceFile{Module: name, Path: file, Hash: hash})
	}
	for _, wheel := range b.Wheels {
		made.Wheels = append(made.Wheels, intent.WheelFile{Name: wheel.Name, Hash: wheel.Hash})
	}
	made = made.Sealed()
	w.mu.Lock()
	w.prints[b.Hash] = &blueprint{arrived: b, made: made, used: time.Now()}
	w.mu.Unlock()
	return made, nil
}

// moduleOf returns the dotted name of the module in a file.
func moduleOf(file string) string {
	name := strings.TrimSuffix(file, ".py")
	if path.Base(name) == "__init__" {
		name = path.Dir(name)
	}
	return strings.ReplaceAll(name, "/", ".")
}

func (w *work) python(ctx context.Context, minor string) (venv.Interpreter, error) {
	i, err := w.maker.Interpreter(ctx, "")
	if err == nil && i.Minor != minor {
		i, err = w.maker.Interpreter(ctx, "python"+minor)
	}
	return i, err
}

// sha1 returns the name that executors have for a content.
func (w *work) sha1(hash string) (string, error) {
	w.mu.Lock()
	known, ok := w.sha1s[hash]
	w.mu.Unlock()
	if ok {
		return known, nil
	}
	content, err := w.contents.read(hash)
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(content)
	name := hex.EncodeToString(sum[:])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sha1s[hash], w.sources[name] = name, hash
	return name, nil
}

// setVariables keeps the variables for handlers in memory. A process that has others is replaced.
func (w *work) setVariables(variables map[string]string, plain []string) {
	w.mu.Lock()
	same := maps.Equal(w.variables, variables) && slices.Equal(w.plain, plain)
	w.variables, w.plain = variables, plain
	w.mu.Unlock()
	if !same {
		w.Renew()
	}
}

// forget drops the variables, and blueprints that no command had for long.
func (w *work) forget(before time.Time) {
	idle := len(w.Processes()) == 0
	w.mu.Lock()
	defer w.mu.Unlock()
	if idle {
		w.variables, w.plain = nil, nil
	}
	maps.DeleteFunc(w.prints, func(_ string, b *blueprint) bool { return b.used.Before(before) })
}

// environment returns the variables for a process that starts.
func (w *work) environment(context.Context) ([]executor.Variable, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []executor.Variable
	for _, name := range slices.Sorted(maps.Keys(w.variables)) {
		out = append(out, executor.Variable{
			Name: name, Value: w.variables[name], Secret: !slices.Contains(w.plain, name),
		})
	}
	return out, nil
}

// usedContents returns the contents of the blueprints that commands had since a time.
func (w *work) usedContents() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	used := map[string]bool{}
	for _, b := range w.prints {
		for _, hash := range hashes(b.arrived) {
			used[hash] = true
		}
	}
	return used
}

// task returns the executor's task of a command.
func (w *work) task(ctx context.Context, m *protocol.CommandMessage) (executor.Task, error) {
	t := m.Payload.Task
	if t == nil {
		return executor.Task{}, refused{"the command has no task"}
	}
	id, err := intent.ParseResourceID(t.Resource.ID)
	if err != nil {
		return executor.Task{}, refused{err.Error()}
	}
	made := executor.Task{
		ID: parseID(m.ID), Reason: t.Reason, DependencyChanged: t.DependencyChanged, Lanes: t.Lanes,
		Timeout:  time.Duration(t.TimeoutMS) * time.Millisecond,
		Requires: map[intent.ResourceID]intent.Status{},
		Resource: intent.Resource{ID: id, Version: t.Resource.Version, Attributes: t.Resource.Attributes},
	}
	switch m.Action {
	case protocol.Deploy:
		made.Action = executor.Deploy
	case protocol.DryRun:
		made.Action = executor.DryRun
	case protocol.Facts:
		made.Action = executor.GetFacts
	}
	for _, text := range t.Resource.Requires {
		required, err := intent.ParseResourceID(text)
		if err != nil {
			return executor.Task{}, refused{err.Error()}
		}
		made.Resource.Requires = append(made.Resource.Requires, required)
	}
	for text, status := range t.Requires {
		required, err := intent.ParseResourceID(text)
		if err != nil {
			return executor.Task{}, refused{err.Error()}
		}
		made.Requires[required] = intent.Status(status)
	}
	made.Blueprint, err = w.blueprint(ctx, m.Payload.Blueprint)
	return made, err
}

// answerOf returns the answer with the result of a task.
func answerOf(r executor.Result) protocol.AnswerBody {
	a := protocol.AnswerBody{
		Status: string(r.Status), Change: string(r.Change), Discovered: r.Discovered, Unreachable: r.Unreachable,
		DurationMS: max(0, r.Finished.Sub(r.Started).Milliseconds()), Lines: encodeLines(r.Messages),
	}
	if len(r.Changes) > 0 {
		changes, err := json.Marshal(r.Changes)
		if err != nil {
			a.Lines = append(a.Lines, ownLine("ERROR", "The changes cannot be encoded: "+err.Error()))
		} else {
			a.Changes = changes
		}
	}
	for _, f := range r.Facts {
		a.Facts = append(a.Facts, protocol.Fact{Name: f.Name, Value: f.Value, Expires: f.Expires})
	}
	return a
}

func encodeLines(lines []intent.LogLine) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(lines))
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil { // its arguments are not JSON
			l.Arguments = nil
			if text, err = json.Marshal(l); err != nil {
				continue
			}
		}
		out = append(out, text)
	}
	return out
}

// ownLine returns a log line of the agent.
func ownLine(level, message string) json.RawMessage {
	text, err := json.Marshal(intent.LogLine{Level: level, Message: message, Time: time.Now().UTC()})
	if err != nil {
		panic("target: a line is plain data: " + err.Error())
	}
	return text
}

// said returns an answer with a status of the agent's own and a line that says why.
func said(status, level, message string, values ...any) protocol.AnswerBody {
	return protocol.AnswerBody{
		Status: status, Change: string(intent.NoChange),
		Lines: []json.RawMessage{ownLine(level, fmt.Sprintf(message, values...))},
	}
}
