package export

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/intent"
)

// dependencies finds what each resource requires and which resource set it is in. It runs
// dependency managers and export functions, which may change both.
func (e *exporter) dependencies() error {
	for _, it := range e.items {
		if e.of(it.instance) != it {
			continue
		}
		for _, other := range e.instances(it.instance, "requires") {
			if needed := e.of(other); needed != nil {
				it.requires = append(it.requires, needed)
			}
		}
	}
	if err := e.resourceSets(); err != nil {
		return err
	}
	if err := e.manage(); err != nil {
		return err
	}
	if len(e.in.Functions) > 0 {
		request := functionsRequest{Names: e.in.Functions, modules: e.in.Modules}
		var reply struct{}
		if err := e.host.Request("export_functions", request, &reply, e.heap, "an export function"); err != nil {
			return err
		}
	}
	if err := e.acyclic(); err != nil {
		return err
	}
	if err := e.write(); err != nil {
		return err
	}
	return e.refuseUnfit()
}

// refuseUnfit refuses values that JSON does not have. As in the reference, dependency managers
// and export functions run before that.
func (e *exporter) refuseUnfit() error {
	for _, it := range e.items {
		for _, unfit := range it.unfit {
			e.failures.add(fail("TypeError", "%s", unfit[0]).hint("%s", unfit[1]).at(it.instance), it.instance)
		}
	}
	return e.failures.err()
}

// functionsRequest is the request export_functions.
type functionsRequest struct {
	Names   []string `json:"names"`
	modules []*module.Module
}

// PythonModules are all modules: only an import tells which of them registers a function.
func (r functionsRequest) PythonModules() []string {
	var names []string
	for _, m := range r.modules {
		if len(m.PythonFiles) > 0 {
			names = append(names, "inmanta_plugins."+m.Name)
		}
	}
	return names
}

// instances are the instances in a relation.
func (e *exporter) instances(of types.Instance, name string) []types.Instance {
	read := e.heap.Attribute(of, name)
	if read.State != eval.Known {
		return nil
	}
	switch v := read.Value.(type) {
	case *types.List:
		var found []types.Instance
		for _, each := range v.Items {
			if i, ok := each.(types.Instance); ok {
				found = append(found, i)
			}
		}
		return found
	case types.Instance:
		return []types.Instance{v}
	}
	return nil
}

// resourceSets puts resources into their sets.
func (e *exporter) resourceSets() error {
	names := map[string]bool{}
	for _, set := range e.heap.Instances("std::ResourceSet") {
		read := e.heap.Attribute(set, "name")
		text, ok := read.Value.(types.Str)
		if read.State != eval.Known || !ok {
			continue
		}
		name := string(text)
		if names[name] {
			return fail("ResourceException", "The resource set %s is defined more than once", name).at(set)
		}
		names[name] = true
		empty := true
		for _, i := range e.instances(set, "resources") {
			it := e.of(i)
			if it == nil {
				continue
			}
			if it.resourceSet != "" && it.resourceSet != name {
				return fail("CompilerException", "resource '%s' can not be part of multiple ResourceSets: %s and %s",
					it.id, it.resourceSet, name).at(i)
			}
			it.resourceSet, empty = name, false
		}
		if empty {
			e.doc.RemovedSets = append(e.doc.RemovedSets, name)
		}
	}
	e.doc.ResourceSets = append(e.doc.ResourceSets, slices.Sorted(maps.Keys(names))...)
	e.doc.RemovedSets = append(
		e.doc.RemovedSets,
		e.in.DeleteSets...) // the server refuses one that the model has too
	slices.Sort(e.doc.RemovedSets)
	e.doc.RemovedSets = slices.Compact(e.doc.RemovedSets)
	return nil
}

// dependenciesRequest is the request export_dependencies.
type dependenciesRequest struct {
	Modules []string `json:"modules"` // Python modules of the managers and of the resources' classes
	// Managers are all managers, in the order in which they register; none at all when
	// none of them has anything to do.
	Managers []string  `json:"managers"`
	Rows     [][10]any `json:"rows"`
}

// PythonModules are those that the request needs.
func (r dependenciesRequest) PythonModules() []string { return r.Modules }

// graph is what dependency managers and export functions did to the resources. It numbers
// them: first the rows of the request, then New.
type graph struct {
	Required map[string][]int `json:"required"` // what each resource requires now, where that changed
	New      [][]string       `json:"new"`      // ids of all resources that Python added
	Removed  []int            `json:"removed"`
	// Missing is the id of a resource, and the id of a resource that it requires and that
	// does not exist; empty: none.
	Missing []string `json:"lost"`
}

// writtenResource is a resource as its Python object writes it.
type writtenResource struct {
	id         []string
	requires   [][]string
	attributes json.RawMessage
	undefined  []string
}

// UnmarshalJSON reads [id, requires, attributes, undefined].
func (w *writtenResource) UnmarshalJSON(raw []byte) error {
	parts := []any{&w.id, &w.requires, &w.attributes, &w.undefined}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) != 4 {
		return errors.New("a written resource has four parts")
	}
	return nil
}

// hasManagers reports whether a dependency manager has something to do.
func (e *exporter) hasManagers() bool {
	for _, m := range e.managers {
		if m.Types == nil ||
			slices.ContainsFunc(e.items, func(it *item) bool { return slices.Contains(m.Types, it.id.Type) }) {
			return true
		}
	}
	return false
}

// manage has Python make objects of all resources and runs the dependency managers on them.
// Objects are needed for export functions too, and for resources that write themselves;
// without any of these there are none.
func (e *exporter) manage() error {
	held := slices.ContainsFunc(e.items, func(it *item) bool { return it.held > 0 })
	// A held resource may do anything when a manager reads it.
	managers := e.hasManagers() || held && len(e.managers) > 0
	if !managers && !held && len(e.in.Functions) == 0 {
		return nil
	}
	index := make(map[*item]int, len(e.items))
	for n, it := range e.items {
		index[it] = n
	}
	request := dependenciesRequest{Rows: make([][10]any, 0, len(e.items)), Managers: []string{}}
	for _, it := range e.items {
		row, err := e.objectRow(it, index)
		if err != nil {
			return err
		}
		request.Rows = append(request.Rows, row)
	}
	if managers {
		for _, m := range e.managers {
			request.Modules = append(request.Modules, m.Module)
			request.Managers = append(request.Managers, m.Name)
		}
	}
	for _, it := range e.items {
		if !slices.Contains(request.Modules, it.kind.Module) {
			request.Modules = append(request.Modules, it.kind.Module)
		}
	}
	e.known = slices.Clone(e.items)
	var reply graph
	if err := e.host.Request("export_dependencies", request, &reply, e.heap, "a dependency manager"); err != nil {
		return err
	}
	return e.connect(&reply)
}

// objectRow is what Python makes the object of a resource of.
func (e *exporter) objectRow(it *item, index map[*item]int) (row [10]any, err error) {
	instance, err := e.host.Encode(it.instance, e.heap)
	if err != nil {
		return row, err
	}
	requires := []int{}
	for _, other := range it.requires {
		requires = append(requires, index[other])
	}
	var fields map[string]json.RawMessage
	if it.held == 0 {
		if fields, err = it.fields(); err != nil {
			return row, err
		}
	}
	return [10]any{
		it.kind.Name, it.id.Type, it.id.Agent, it.id.Attribute, it.id.Value,
		instance, fields, requires, it.undefined, it.held,
	}, nil
}

// numbered returns the resource to which Python gives a number.
func (e *exporter) numbered(n int) (*item, error) {
	if n < 0 || n >= len(e.known) {
		return nil, fmt.Errorf("export: the worker names resource %d, which does not exist", n)
	}
	return e.known[n], nil
}

// atKey does the same for a number that is the key of a JSON object.
func (e *exporter) atKey(text string) (*item, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("export: the worker names a resource %q: %w", text, err)
	}
	return e.numbered(n)
}

// connect applies to the resources what Python did to them.
func (e *exporter) connect(now *graph) error {
	if len(now.Missing) == 2 {
		made := fail("KeyError", "%s", now.Missing[1]).
			hint("a dependency manager made %s require this resource, which does not exist", now.Missing[0])
		for _, it := range e.known {
			if it.id.String() == now.Missing[0] {
				made = made.at(it.instance)
			}
		}
		return made
	}
	for _, parts := range now.New[min(len(now.New), e.added):] {
		id, err := idOf(parts)
		if err != nil {
			return err
		}
		it := &item{id: id}
		e.known, e.items = append(e.known, it), append(e.items, it)
		e.added++
	}
	for text, places := range now.Required {
		it, err := e.atKey(text)
		if err != nil {
			return err
		}
		it.requires = nil
		for _, n := range places {
			needed, err := e.numbered(n)
			if err != nil {
				return err
			}
			it.requires = append(it.requires, needed)
		}
	}
	gone := map[*item]bool{}
	for _, n := range now.Removed {
		it, err := e.numbered(n)
		if err != nil {
			return err
		}
		gone[it] = true
	}
	e.items = slices.DeleteFunc(e.items, func(it *item) bool { return gone[it] })
	return nil
}

// write has the Python objects write themselves, and takes over what changed.
func (e *exporter) write() error {
	if e.known == nil {
		return nil
	}
	request := struct {
		Changed bool `json:"again"` // export functions ran after the dependency managers
	}{len(e.in.Functions) > 0}
	var reply struct {
		graph
		Changed map[string]map[string]json.RawMessage `json:"changed"`
		Whole   map[string]writtenResource            `json:"whole"`
	}
	if err := e.host.Request("export_written", request, &reply, e.heap, "writing the resources"); err != nil {
		return err
	}
	if err := e.connect(&reply.graph); err != nil {
		return err
	}
	for text, fields := range reply.Changed {
		it, err := e.atKey(text)
		if err != nil {
			return err
		}
		if err := it.change(fields); err != nil {
			return err
		}
	}
	for text, resource := range reply.Whole {
		it, err := e.atKey(text)
		if err != nil {
			return err
		}
		if err := it.replace(resource); err != nil {
			return err
		}
	}
	return nil
}

// acyclic refuses resources that require each other in a cycle.
func (e *exporter) acyclic() error {
	var path []*item
	var walk func(it *item) error
	walk = func(it *item) error {
		switch it.visited {
		case left:
			return nil
		case entered:
			start := slices.Index(path, it)
			cycle, way := []string{it.id.String()}, []string{it.id.String()}
			for _, each := range slices.Backward(path[start+1:]) { // the reference lists it backwards
				cycle = append(cycle, each.id.String())
			}
			for _, each := range append(slices.Clone(path[start+1:]), it) {
				way = append(way, each.id.String())
			}
			return fail("DependencyCycleException", "Cycle in dependencies: [%s]", strings.Join(cycle, ", ")).
				hint("take one of these requirements out of the model: %s", strings.Join(way, " -> ")).at(it.instance)
		}
		it.visited = entered
		path = append(path, it)
		for _, other := range it.requires {
			if err := walk(other); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		it.visited = left
		return nil
	}
	for _, it := range e.items {
		if err := walk(it); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the document's resources.
func (e *exporter) finish() error {
	slices.SortFunc(e.items, func(a, b *item) int { return compareID(a.id, b.id) })
	e.doc.Resources = make([]Resource, len(e.items))
	for n, it := range e.items {
		made := it.resource()
		if !e.in.ModelOnly {
			made.AttributeHash = attributeHash(made.Attributes, made.Requires)
		}
		e.doc.Resources[n] = made
	}
	return e.unknowns()
}

// resource is the item as the document has it.
func (it *item) resource() Resource {
	requires := make([]intent.ResourceID, 0, len(it.requires))
	for _, other := range it.requires {
		requires = append(requires, other.id)
	}
	slices.SortFunc(requires, compareID)
	requires = slices.Compact(requires)
	if it.needs != nil {
		requires = it.needs
	}
	slices.Sort(it.undefined)
	return Resource{
		ID:            it.id,
		Attributes:    it.attributes,
		Requires:      requires,
		ResourceSet:   it.resourceSet,
		Undefined:     slices.Compact(it.undefined),
		SendEvent:     it.sendEvent,
		ReceiveEvents: it.receiveEvents,
		ReportOnly:    it.reportOnly,
		Purged:        it.purged,
	}
}

func compareID(a, b intent.ResourceID) int {
	if order := strings.Compare(a.Type, b.Type); order != 0 {
		return order
	}
	if order := strings.Compare(a.Agent, b.Agent); order != 0 {
		return order
	}
	if order := strings.Compare(a.Attribute, b.Attribute); order != 0 {
		return order
	}
	return strings.Compare(a.Value, b.Value)
}

// unknowns collects the parameters that plug-ins asked for and that have no value.
func (e *exporter) unknowns() error {
	var reply struct {
		Unknowns []map[string]string `json:"unknowns"`
	}
	if err := e.host.Request("export_unknowns", nil, &reply, e.heap, "the unknown parameters"); err != nil {
		return err
	}
	for _, u := range reply.Unknowns {
		unknown := intent.Unknown{Parameter: u["parameter"], Source: u["source"]}
		if id, err := intent.ParseResourceID(u["resource"]); err == nil {
			unknown.Resource = id
		}
		if !slices.Contains(e.doc.Unknowns, unknown) {
			e.doc.Unknowns = append(e.doc.Unknowns, unknown)
		}
	}
	slices.SortFunc(e.doc.Unknowns, func(a, b intent.Unknown) int {
		return cmp.Or(compareID(a.Resource, b.Resource), cmp.Compare(a.Parameter, b.Parameter),
			cmp.Compare(a.Source, b.Source))
	})
	return nil
}
