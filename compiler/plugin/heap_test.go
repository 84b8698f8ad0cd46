package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/runtime"
)

// fakeHeap is a hand-written model. It counts reads.
type fakeHeap struct {
	types     map[string]*types.Entity
	instances []*fakeInstance
	variables map[string]types.Value
	unset     map[string]bool // variables without a value
	reads     int
}

type fakeInstance struct {
	types.IsValue
	id     uint64
	entity *types.Entity
	values map[string]types.Value // absent: no such attribute; nil: no value yet
	empty  map[string]bool        // optional relations without value
}

func (i *fakeInstance) InstanceID() uint64    { return i.id }
func (i *fakeInstance) Entity() *types.Entity { return i.entity }

type fakeSlot struct {
	eval.Slot
	name string
}

func newHeap() *fakeHeap {
	return &fakeHeap{types: map[string]*types.Entity{}, variables: map[string]types.Value{}, unset: map[string]bool{}}
}

// add makes an instance; pairs are names and values.
func (h *fakeHeap) add(entity string, pairs ...any) *fakeInstance {
	e := h.types[entity]
	if e == nil {
		e = &types.Entity{Name: entity}
		h.types[entity] = e
	}
	i := &fakeInstance{
		id:     uint64(len(h.instances) + 1),
		entity: e,
		values: map[string]types.Value{},
		empty:  map[string]bool{},
	}
	for n := 0; n < len(pairs); n += 2 {
		v, _ := pairs[n+1].(types.Value)
		i.values[pairs[n].(string)] = v
	}
	h.instances = append(h.instances, i)
	return i
}

func (h *fakeHeap) Attribute(of types.Instance, name string) eval.Read {
	h.reads++
	i := of.(*fakeInstance)
	v, ok := i.values[name]
	switch {
	case i.empty[name]:
		return eval.Read{State: eval.Optional}
	case !ok:
		return eval.Read{State: eval.Missing}
	case v == nil:
		return eval.Read{State: eval.Unset, Slot: fakeSlot{name: fmt.Sprintf("%s#%d.%s", i.entity.Name, i.id, name)}}
	}
	return eval.Read{State: eval.Known, Value: v}
}

func (h *fakeHeap) Variable(name string) eval.Read {
	if h.unset[name] {
		return eval.Read{State: eval.Unset, Slot: fakeSlot{name: name}}
	}
	if v, ok := h.variables[name]; ok {
		return eval.Read{State: eval.Known, Value: v}
	}
	return eval.Read{State: eval.Missing}
}

func (h *fakeHeap) Instances(entity string) []types.Instance {
	var found []types.Instance
	for _, i := range h.instances {
		if i.entity.Name == entity {
			found = append(found, i)
		}
	}
	return found
}

func (h *fakeHeap) Type(name string) any {
	if e, ok := h.types[name]; ok {
		return e
	}
	return nil
}

// project is a folder with v1 modules below libs, written as txtar.
type project struct {
	t       testing.TB
	host    *Host
	heap    *fakeHeap
	plugins map[string]*eval.Signature
}

// open writes the modules, starts a worker and loads them.
func open(t testing.TB, archive string, change ...func(*Config)) *project {
	t.Helper()
	p, err := tryOpen(t, archive, change...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryOpen(t testing.TB, archive string, change ...func(*Config)) (*project, error) {
	t.Helper()
	dir := t.TempDir()
	modules := map[string]*eval.ModuleCode{}
	var order []string
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, "libs", filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		name, rest, _ := strings.Cut(f.Name, "/")
		if modules[name] == nil {
			root := filepath.Join(dir, "libs", name)
			modules[name] = &eval.ModuleCode{Name: name, Root: root, Dir: filepath.Join(root, "plugins")}
			order = append(order, name)
		}
		if strings.HasPrefix(rest, "plugins/") && strings.HasSuffix(rest, ".py") {
			modules[name].Files = append(modules[name].Files, path)
		}
	}
	unpacked, err := runtime.Unpack(filepath.Join(os.TempDir(), "ordain-plugin-test"))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Python:      plugintest.Python(t),
		RuntimeDir:  unpacked,
		ProjectDir:  dir,
		ProjectName: "test",
		ModulePath:  []string{filepath.Join(dir, "libs")},
		CallTimeout: time.Minute,
	}
	for _, f := range change {
		f(&c)
	}
	host := Start(t.Context(), c)
	t.Cleanup(func() { host.Close() })
	var code []eval.ModuleCode
	for _, name := range order {
		code = append(code, *modules[name])
	}
	loaded, err := host.Load(code)
	if err != nil {
		return nil, err
	}
	p := &project{t: t, host: host, heap: newHeap(), plugins: map[string]*eval.Signature{}}
	for _, s := range loaded.Plugins {
		p.plugins[s.Name] = s
	}
	return p, nil
}

func (p *project) call(name string, args ...types.Value) eval.Outcome {
	p.t.Helper()
	s, ok := p.plugins[name]
	if !ok {
		p.t.Fatalf("no plug-in %s", name)
	}
	return p.host.Call(eval.PluginCall{Plugin: s, Args: args, Namespace: "__config__"}, p.heap)
}

// value makes a call that must succeed, and returns its value.
func (p *project) value(name string, args ...types.Value) types.Value {
	p.t.Helper()
	o := p.call(name, args...)
	if o.Err != nil {
		p.t.Fatalf("%s: %s: %s\n%s", name, o.Err.Class, o.Err.Message, o.Err.Trace)
	}
	if o.Unset != nil {
		p.t.Fatalf("%s waits for %v", name, o.Unset)
	}
	return o.Value
}
