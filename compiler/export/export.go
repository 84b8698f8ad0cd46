package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
)

// rowsPerRequest bounds what one request to Python carries.
const rowsPerRequest = 2000

// Input is what Export needs, and the Document that it fills.
type Input struct {
	// Result of the compile, which must have succeeded. Heap may take its place.
	Result *eval.Result
	Heap   eval.Heap
	// Host ran the plug-ins of the compile; it is still open.
	Host *plugin.Host
	// Modules are those that the model loaded.
	Modules []*module.Module
	// Document is filled with resources, code, files, unknowns, sets, output and
	// stages. When the export fails it gets only output and warnings.
	Document *Document
	// Partial: the model holds the changed resource sets only; DeleteSets are
	// sets to remove.
	Partial    bool
	DeleteSets []string
	// Functions are the export functions to run, by name.
	Functions []string
	// ModelOnly leaves out hashes and where fields were set: they are for the
	// export's own document only.
	ModelOnly bool
	// ProjectDir is the folder that places of Python functions are relative to.
	ProjectDir string
}

// Error is an export that failed.
type Error struct {
	diag.Diagnostic
	// Further are the errors of other resources.
	Further []diag.Diagnostic
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Export makes the resources of a successful compile. It returns an *Error when something is
// wrong with them; Diagnostics makes a list of diagnostics of that.
func Export(ctx context.Context, in Input) error {
	heap := in.Heap
	if heap == nil {
		heap = Finished(in.Result)
	}
	e := &exporter{
		ctx: ctx, in: in, heap: heap, host: in.Host,
		doc:     NewDocument(),
		sources: newSources(in.Modules), expected: map[*types.Entity]bool{},
	}
	err := e.run()
	in.Document.Output = append(in.Document.Output, in.Host.TakeOutput()...)
	in.warn(in.Host.TakeWarnings())
	if err != nil {
		return asError(err)
	}
	doc := in.Document
	doc.Resources, doc.Code, doc.Files = e.doc.Resources, e.doc.Code, e.doc.Files
	doc.Unknowns, doc.ResourceSets, doc.RemovedSets = e.doc.Unknowns, e.doc.ResourceSets, e.doc.RemovedSets
	doc.Provenance = e.doc.Provenance
	doc.UnmanagedAgents = unmanagedAgents(heap)
	doc.Partial = in.Partial
	doc.Stages = append(doc.Stages, e.doc.Stages...)
	return nil
}

// warn adds the warnings about deprecated plug-ins, each once.
func (in Input) warn(messages []string) {
	const kind = "PluginDeprecationWarning"
	for _, message := range messages {
		if slices.ContainsFunc(in.Document.Warnings, func(w diag.Diagnostic) bool { return w.Message == message }) {
			continue
		}
		in.Document.Warnings = append(in.Document.Warnings,
			diag.Diagnostic{Severity: diag.Warning, Code: kind, Kind: kind, Message: message})
		if in.Result != nil {
			in.Result.Warnings = append(in.Result.Warnings, eval.Warning{Kind: kind, Message: message})
		}
	}
}

// Diagnostics are the diagnostics in an error of Export.
func Diagnostics(err error) []diag.Diagnostic {
	e := asError(err)
	return append([]diag.Diagnostic{e.Diagnostic}, e.Further...)
}

// kind is a resource type as its Python class declares it.
type kind struct {
	Name        string `json:"name"`
	Agent       string `json:"agent"`
	IDAttribute string `json:"id_attribute"`
	OwnID       bool   `json:"own_id"` // only Python can make the id
	// Held: Python makes the resources, keeps them and writes them at the end,
	// because the class overrides how some of that is done.
	Held   bool        `json:"held"`
	Fields [][2]string `json:"fields"` // the name, and how it is made: see exporter.field
	// Functions are those that compute the fields with "python".
	Functions map[string]function `json:"functions"`
	Module    string              `json:"module"` // Python module of the class

	names  []string // of all fields, sorted
	places []int    // of Fields, in names
}

// manager is a dependency manager: a Python function that changes what requires what.
type manager struct {
	Name   string `json:"name"`
	Module string `json:"module"` // Python module of the function
	// Types are the resource types that it works on: without a resource of these it
	// does nothing. nil: it may always do something.
	Types []string `json:"types"`
}

// fieldsRequest is the request export_fields.
type fieldsRequest struct {
	Type   string   `json:"type"`
	Module string   `json:"module"`
	Names  []string `json:"names"`
	Rows   [][3]any `json:"rows"`
	Failed bool     `json:"failed"` // the export has failed: Python looks for further errors only
}

// PythonModules are those that the request needs.
func (r fieldsRequest) PythonModules() []string { return []string{r.Module} }

// item is a resource in the making.
type item struct {
	kind       *kind
	instance   types.Instance
	id         intent.ResourceID
	values     []json.RawMessage // of the fields, in the order of kind.names; nil: not there
	attributes json.RawMessage   // of values, once the item is sealed
	requires   []*item
	ignored    bool
	visited    visit
	// These are fields of the resource, once the item is sealed.
	sendEvent, receiveEvents, reportOnly, purged bool

	resourceSet string
	python      []string            // fields that Python has to make
	undefined   []string            // fields whose value is unknown
	references  []string            // types of the references and mutators in it
	held        int                 // number of the object that Python keeps; 0: none
	needs       []intent.ResourceID // replaces requires, where it is not nil
	unfit       [][2]string         // values that JSON does not have: the error, and a hint
	reads       map[string][]read   // what the functions of fields read of the model
}

type exporter struct {
	ctx        context.Context
	in         Input
	heap       eval.Heap
	host       *plugin.Host
	doc        *Document
	kinds      []*kind
	modules    map[string]string // Python module of each reference and mutator type
	managers   []manager
	known      []*item // those that Python has objects of, by the number it gives them
	added      int     // how many of known came from Python
	items      []*item
	byInstance map[uint64]*item // by id: the last one, where an instance is exported for two types
	sources    *sources
	expected   map[*types.Entity]bool
	failures   failures
}

func (e *exporter) run() error {
	for _, stage := range []struct {
		name string
		do   func() error
	}{
		{"resources", e.resources},
		{"dependencies", e.dependencies},
		{"code", e.code},
		{"document", e.finish},
		{"provenance", e.provenance},
	} {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		if err := stage.do(); err != nil {
			return err
		}
		e.doc.Stages = append(e.doc.Stages,
			Stage{Name: stage.name, Milliseconds: float64(time.Since(start).Microseconds()) / 1000})
	}
	return nil
}

// resources makes the resources with all their fields.
func (e *exporter) resources() error {
	var declared struct {
		Types      []*kind           `json:"types"`
		References map[string]string `json:"references"`
		Managers   []manager         `json:"managers"`
	}
	if err := e.host.Request("export_types", nil, &declared, e.heap, "looking at the resource classes"); err != nil {
		return err
	}
	e.kinds, e.modules, e.managers = declared.Types, declared.References, declared.Managers
	e.byInstance = make(map[uint64]*item)
	for _, k := range e.kinds {
		if err := e.make(k); err != nil {
			if len(e.failures.list) > 0 { // these come first
				break
			}
			return err
		}
	}
	return e.failures.err()
}

// make makes the resources of one type. What is wrong with one of them is noted.
func (e *exporter) make(k *kind) error {
	k.arrange()
	var made []*item
	room := make([]json.RawMessage, len(k.names))
	for _, instance := range e.heap.Instances(k.Name) {
		if it := e.begin(k, instance, room); it != nil {
			made = append(made, it)
		}
	}
	for rows := range slices.Chunk(made, rowsPerRequest) {
		if err := e.askFields(k, rows); err != nil {
			return err
		}
	}
	made = slices.DeleteFunc(made, func(it *item) bool { return it.ignored })
	e.refuseDuplicates(k, made)
	for _, it := range made {
		it.seal()
		e.items = append(e.items, it)
		e.byInstance[it.instance.InstanceID()] = it
	}
	return nil
}

// of returns the resource that an instance is exported as; nil for none.
func (e *exporter) of(i types.Instance) *item { return e.byInstance[i.InstanceID()] }

// refuseDuplicates notes resources of one type that have the id of an earlier one.
func (e *exporter) refuseDuplicates(k *kind, made []*item) {
	last := make(map[intent.ResourceID]*item, len(made))
	for _, it := range made {
		if other := last[it.id]; other != nil {
			e.failures.add(
				fail("CompilerException", "Resource %s exists more than once in the configuration model", it.id).
					hint("two instances of %s have the same agent and %s", k.Name, k.IDAttribute).
					at(it.instance).other(other.instance),
				it.instance,
			)
		}
		last[it.id] = it
	}
}

// begin writes what Go can write of a resource; nil when it is not exported. room is
// where it collects the values of the fields.
func (e *exporter) begin(k *kind, instance types.Instance, room []json.RawMessage) *item {
	clear(room)
	it := &item{kind: k, instance: instance, values: room}
	if !k.OwnID {
		agent, state := e.text(instance, k.Agent)
		if state == undefined {
			return nil
		}
		if state == written {
			var value string
			if value, state = e.idValue(instance, k.IDAttribute); state == undefined {
				return nil
			}
			if state == written {
				it.id = intent.ResourceID{Type: k.Name, Agent: agent, Attribute: k.IDAttribute, Value: value}
			}
		}
	}
	for n, f := range k.Fields {
		name, how := f[0], f[1]
		if how == "python" {
			it.python = append(it.python, name)
			continue
		}
		raw, state := e.field(instance, name, how)
		switch state {
		case ignored:
			return nil
		case needPython:
			it.python = append(it.python, name)
			continue
		case undefined:
			it.undefined = append(it.undefined, name)
		}
		it.values[k.places[n]] = raw
	}
	it.set("references", emptyList)
	it.set("mutators", emptyList)
	if it.waitsForPython() {
		it.values = slices.Clone(room)
	} else {
		it.seal()
	}
	return it
}

// waitsForPython reports whether Python has to make fields or the id of the resource.
func (it *item) waitsForPython() bool { return len(it.python) > 0 || it.id.IsZero() }

// text follows a path of attributes to a string. Where that fails, Python does it again,
// for the error that it raises.
func (e *exporter) text(instance types.Instance, path string) (string, outcome) {
	var v types.Value = instance
	for name := range strings.SplitSeq(path, ".") {
		at, ok := v.(types.Instance)
		if !ok {
			return "", needPython
		}
		read := e.heap.Attribute(at, name)
		if read.State != eval.Known {
			return "", needPython
		}
		v = read.Value
	}
	switch v := v.(type) {
	case types.Str:
		if strings.Contains(string(v), ",") {
			return "", needPython
		}
		return string(v), written
	case types.Unknown:
		return "", undefined
	}
	return "", needPython
}

// idValue is the value of the attribute that is part of the id.
func (e *exporter) idValue(instance types.Instance, name string) (string, outcome) {
	read := e.heap.Attribute(instance, name)
	if read.State != eval.Known {
		return "", needPython
	}
	switch v := read.Value.(type) {
	case types.Str:
		if strings.Contains(string(v), "]") {
			return "", needPython
		}
		return string(v), written
	case types.Int:
		return fmt.Sprint(int64(v)), written
	case types.Unknown:
		return "", undefined
	}
	return "", needPython
}

// askFields has Python make the fields that Go could not.
func (e *exporter) askFields(k *kind, made []*item) error {
	request := fieldsRequest{Type: k.Name, Module: k.Module, Failed: len(e.failures.list) > 0}
	for _, f := range k.Fields {
		if f[1] == "python" {
			request.Names = append(request.Names, f[0])
		}
	}
	var asked []*item
	for _, it := range made {
		if !it.waitsForPython() {
			continue
		}
		row, err := e.row(it, request.Names)
		if err != nil {
			return err
		}
		asked, request.Rows = append(asked, it), append(request.Rows, row)
	}
	if len(asked) == 0 {
		return nil
	}
	var reply struct {
		Rows []madeFields `json:"rows"`
	}
	if err := e.host.Request("export_fields", request, &reply, e.heap, "a resource class of "+k.Name); err != nil {
		return gone(err, asked)
	}
	if len(reply.Rows) != len(asked) {
		return fmt.Errorf("export: %d rows for %d resources of %s", len(reply.Rows), len(asked), k.Name)
	}
	for n, row := range reply.Rows {
		if len(row.Errors) > 0 {
			asked[n].ignored = true
			e.fieldsFailed(row.Errors, asked[n].instance)
			continue
		}
		if err := asked[n].take(row); err != nil {
			return err
		}
	}
	return nil
}

// fieldsFailed notes why fields of a resource cannot be made. Several may fail on one line
// of Python that all of them use; that is one error.
func (e *exporter) fieldsFailed(fields []json.RawMessage, instance types.Instance) {
	var noted []*Error
	for _, raw := range fields {
		err := asError(e.raised(raw))
		if !slices.ContainsFunc(noted, err.repeatedBy) {
			noted = append(noted, err)
			e.failures.add(err, instance)
		}
	}
}

// raised makes an error of an exception of a resource's class.
func (e *exporter) raised(exception json.RawMessage) error {
	err := plugin.Raised(exception)
	var raised *plugin.RequestError
	if !errors.As(err, &raised) {
		return err
	}
	return asError(err).hint("%s", raised.Hint(e.heap.Type))
}

// row is the request for one resource; all are the fields that Python makes of its type.
func (e *exporter) row(it *item, all []string) (row [3]any, err error) {
	e.expect(it.instance.Entity())
	if row[0], err = e.host.Encode(it.instance, e.heap); err != nil {
		return row, err
	}
	if !it.id.IsZero() {
		row[1] = []string{it.id.Agent, it.id.Attribute, it.id.Value}
	}
	if !slices.Equal(it.python, all) {
		row[2] = it.python
	}
	return row, nil
}

// madeFields is the answer to one row: the fields of a resource that Python made.
type madeFields struct {
	Ignored    bool                       `json:"ignored"`
	UnknownID  bool                       `json:"unknown_id"`
	ID         []string                   `json:"id"`
	Values     map[string]json.RawMessage `json:"values"`
	Reads      map[string][]read          `json:"reads"`
	Undefined  []string                   `json:"undefined"`
	Unfit      [][2]string                `json:"unfit"`
	References json.RawMessage            `json:"references"`
	Mutators   json.RawMessage            `json:"mutators"`
	Errors     []json.RawMessage          `json:"errors"`
	Held       int                        `json:"held"`  // see item.held
	Types      []string                   `json:"types"` // of its references and mutators, with Held
}

// take puts the fields that Python made into the resource.
func (it *item) take(row madeFields) error {
	if row.Ignored || row.UnknownID {
		it.ignored = true
		return nil
	}
	if len(row.ID) > 0 {
		var err error
		if it.id, err = idOf(row.ID); err != nil {
			return err
		}
	}
	it.reads, it.unfit = row.Reads, row.Unfit
	for name, raw := range row.Values {
		value, err := canonical(raw)
		if err != nil {
			return fmt.Errorf("export: field %s of %s: %w", name, it.id, err)
		}
		if !it.set(name, value) {
			return fmt.Errorf("export: the worker made field %q, which %s does not have", name, it.kind.Name)
		}
	}
	if row.Held > 0 {
		it.held, it.references = row.Held, row.Types
	}
	for _, name := range row.Undefined {
		it.set(name, json.RawMessage(undefinedText))
		it.undefined = append(it.undefined, name)
	}
	if row.References != nil {
		return it.refer(row.References, row.Mutators)
	}
	return nil
}

// idOf makes an id of the list of its parts.
func idOf(parts []string) (id intent.ResourceID, err error) {
	if len(parts) != 4 {
		return id, fmt.Errorf("export: an id has four parts, not %d", len(parts))
	}
	return intent.ResourceID{Type: parts[0], Agent: parts[1], Attribute: parts[2], Value: parts[3]}, nil
}

// expect has instances of an entity sent to Python with all their attributes but lists of other
// instances: the methods of a resource class read most of them.
func (e *exporter) expect(entity *types.Entity) {
	if e.expected[entity] {
		return
	}
	e.expected[entity] = true
	for _, a := range entity.Attributes {
		if a.End == nil || !a.End.Multi() {
			e.host.Expect(entity, a.Name)
		}
	}
}

// refer puts references and mutators into the fields of the resource and notes their types.
func (it *item) refer(references, mutators json.RawMessage) error {
	for name, raw := range map[string]json.RawMessage{"references": references, "mutators": mutators} {
		value, err := canonical(raw)
		if err != nil {
			return err
		}
		it.set(name, value)
		var described []struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &described); err != nil {
			return err
		}
		for _, d := range described {
			it.references = append(it.references, d.Type)
		}
	}
	return nil
}
