package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
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

// Input is what an export works on.
type Input struct {
	// Result of the compile, which must have succeeded. Heap may take its place.
	Result *eval.Result
	Heap   eval.Heap
	// Host ran the plug-ins of the compile; it is still open.
	Host *plugin.Host
	// Modules that the model loaded.
	Modules []*module.Module
	// Document is filled in: resources, code, files, unknowns, sets, output and
	// stages. Nothing of it changes when the export fails.
	Document *Document
	// Partial: the model holds the changed resource sets only; DeleteSets are
	// sets to remove.
	Partial    bool
	DeleteSets []string
	// Functions are the export functions to run, by name.
	Functions []string
	// ModelOnly leaves out what only the export's own document has: where fields
	// were set, and hashes.
	ModelOnly bool
	// ProjectDir is what places of Python functions are shown relative to.
	ProjectDir string
}

// Error is an export that failed.
type Error struct {
	diag.Diagnostic
	// Further is what is wrong with other resources.
	Further []diag.Diagnostic
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Export makes the resources of a successful compile. What is wrong with them
// is an *Error; Diagnostics gives it for people.
func Export(ctx context.Context, in Input) error {
	heap := in.Heap
	if heap == nil {
		heap = Finished(in.Result)
	}
	e := &exporter{
		ctx: ctx, in: in, heap: heap, host: in.Host,
		doc:     NewDocument(),
		sources: readSources(in.Modules), expected: map[*types.Entity]bool{},
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
	doc.Partial = in.Partial
	doc.Stages = append(doc.Stages, e.doc.Stages...)
	return nil
}

// warn adds what was told of deprecated plug-ins, each once.
func (in Input) warn(messages []string) {
	const kind = "PluginDeprecationWarning"
	for _, message := range messages {
		if slices.ContainsFunc(in.Document.Warnings, func(w diag.Diagnostic) bool { return w.Message == message }) {
			continue
		}
		in.Document.Warnings = append(
			in.Document.Warnings,
			diag.Diagnostic{Severity: diag.Warning, Code: kind, Kind: kind, Message: message},
		)
		if in.Result != nil {
			in.Result.Warnings = append(in.Result.Warnings, eval.Warning{Kind: kind, Message: message})
		}
	}
}

// Diagnostics gives what Export returned, for people.
func Diagnostics(err error) []diag.Diagnostic {
	e := asError(err)
	return append([]diag.Diagnostic{e.Diagnostic}, e.Further...)
}

// kind is a resource type as its Python class declares it.
type kind struct {
	Name        string `json:"name"`
	Agent       string `json:"agent"`
	IDAttribute string `json:"id_attribute"`
	OwnID       bool   `json:"own_id"` // the id takes Python
	// Held: Python makes the resources, keeps them, and writes them at the end,
	// as the class has ways of its own to do some of that.
	Held   bool        `json:"held"`
	Fields [][2]string `json:"fields"` // name, how
	// Functions are those that compute the fields with "python".
	Functions map[string]function `json:"functions"`
	Module    string              `json:"module"` // Python module of the class

	names  []string // of all fields, sorted
	places []int    // of Fields, in names
}

// manager is a dependency manager.
type manager struct {
	Name   string `json:"name"`
	Module string `json:"module"` // Python module of the function
	// Types are the resource types without which it does nothing; nil when it
	// may always do something.
	Types []string `json:"types"`
}

// fieldsRequest is the request export_fields.
type fieldsRequest struct {
	Type   string   `json:"type"`
	Module string   `json:"module"`
	Names  []string `json:"names"`
	Rows   [][3]any `json:"rows"`
	Failed bool     `json:"failed"` // the export does: only what else is wrong is wanted
}

// PythonModules are those that the request needs.
func (r fieldsRequest) PythonModules() []string { return []string{r.Module} }

// item is a resource in the making.
type item struct {
	kind       *kind
	instance   types.Instance
	id         intent.ResourceID
	values     []json.RawMessage // of the fields, in the order of kind.names; nil: not there
	attributes json.RawMessage   // values, once they are sealed
	requires   []*item
	ignored    bool
	visited    visit
	// what some of the fields say, once they are sealed
	sendEvent, receiveEvents, reportOnly, purged bool
	same                                         *item // of the same kind, with the same hash of the id
	resourceSet                                  string
	rare                                         *rareOfItem
}

// rareOfItem is what few resources have.
type rareOfItem struct {
	python     []string // fields that Python has to make
	undefined  []string
	references []string            // types of references and mutators in it
	held       int                 // number of the object that Python keeps; 0: none
	needs      []intent.ResourceID // what it says that it requires, where that is not requires; not nil then
	unfit      [][2]string         // why values are none of JSON, and which
	reads      map[string][]read   // what the functions of fields read of the model
}

var plainItem rareOfItem

// rarely is what it has of that, to be read.
func (it *item) rarely() *rareOfItem {
	if it.rare == nil {
		return &plainItem
	}
	return it.rare
}

// more is what it has of that, to be written.
func (it *item) more() *rareOfItem {
	if it.rare == nil {
		it.rare = &rareOfItem{}
	}
	return it.rare
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
	known      []*item // those that Python has objects of, by its places
	came       int     // how many of known modules added
	items      []*item
	byInstance []*item // by id: the last one, where an instance is exported for two types
	sources    <-chan *sources
	expected   map[*types.Entity]bool
	written    arena // attributes that Python made something of
	wrong      failures
}

// writer writes what needs no Python. Several may be at work, on one heap.
type writer struct {
	heap    eval.Heap
	items   []item            // unused
	values  []json.RawMessage // of the item in work
	texts   arena             // of fields
	written arena             // attributes
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
		e.doc.Stages = append(
			e.doc.Stages,
			Stage{Name: stage.name, Milliseconds: float64(time.Since(start).Microseconds()) / 1000},
		)
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
	all := len(e.in.Result.Instances)
	e.items, e.byInstance = make([]*item, 0, all), make([]*item, all+1)
	for _, k := range e.kinds {
		if err := e.make(k); err != nil {
			if len(e.wrong.list) > 0 { // that is the error
				break
			}
			return err
		}
	}
	return e.wrong.err()
}

// make makes the resources of one type. What is wrong with one of them is noted.
func (e *exporter) make(k *kind) error {
	k.arrange()
	made := e.beginAll(k, e.heap.Instances(k.Name))
	for rows := range slices.Chunk(made, rowsPerRequest) {
		if err := e.askFields(k, rows); err != nil {
			return err
		}
	}
	made = slices.DeleteFunc(made, func(it *item) bool { return it.ignored })
	k.unique(made, &e.wrong)
	for _, it := range made {
		it.seal(&e.written)
		e.remember(it)
	}
	return nil
}

// remember notes which resource an instance is exported as.
func (e *exporter) remember(it *item) {
	e.items = append(e.items, it)
	e.byInstance[it.instance.InstanceID()] = it
}

// of gives the resource that an instance is exported as; nil for none.
func (e *exporter) of(i types.Instance) *item {
	if id := i.InstanceID(); id < uint64(len(e.byInstance)) {
		return e.byInstance[id]
	}
	return nil
}

// unique notes resources that have the id of one before them.
func (k *kind) unique(made []*item, wrong *failures) {
	seen := make(map[uint64]*item, len(made))
	seed := maphash.MakeSeed()
	var text []byte
	for _, it := range made {
		text = it.id.Append(text[:0])
		sum := maphash.Bytes(seed, text)
		for other := seen[sum]; other != nil; other = other.same {
			if other.id == it.id {
				wrong.add(
					fail("CompilerException", "Resource %s exists more than once in the configuration model", it.id).
						hint("two instances of %s have the same agent and %s", k.Name, k.IDAttribute).
						at(it.instance).other(other.instance),
					it.instance,
				)
			}
		}
		it.same = seen[sum]
		seen[sum] = it
	}
}

// beginAll begins the resources of one type, on all processors.
func (e *exporter) beginAll(k *kind, instances []types.Instance) []*item {
	all := make([]*item, len(instances))
	e.inParts(len(all), func(from, to int) {
		w := writer{heap: e.heap}
		for n := from; n < to; n++ {
			all[n] = w.begin(k, instances[n])
		}
	})
	return slices.DeleteFunc(all, func(it *item) bool { return it == nil })
}

// inParts has all processors read the model, where nothing changes it any more.
func (e *exporter) inParts(n int, do func(from, to int)) {
	if _, same := e.heap.(*finished); same {
		inParts(n, do)
	} else {
		do(0, n)
	}
}

// itemsAtOnce is how many items are one allocation.
const itemsAtOnce = 32

// begin writes what Go can write of a resource; nil when it is not exported.
func (w *writer) begin(k *kind, instance types.Instance) *item {
	w.values = append(w.values[:0], make([]json.RawMessage, len(k.names))...)
	if len(w.items) == 0 {
		w.items = make([]item, itemsAtOnce)
	}
	it := &w.items[0]
	w.items = w.items[1:]
	*it = item{kind: k, instance: instance, values: w.values}
	before := w.texts.mark()
	if !k.OwnID {
		agent, state := w.text(instance, k.Agent)
		if state == undefined {
			return nil
		}
		if state == written {
			var value string
			if value, state = w.idValue(instance, k.IDAttribute); state == undefined {
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
			it.more().python = append(it.more().python, name)
			continue
		}
		raw, state := w.field(instance, name, how)
		switch state {
		case ignored:
			return nil
		case needPython:
			it.more().python = append(it.more().python, name)
			continue
		case undefined:
			it.more().undefined = append(it.more().undefined, name)
		}
		it.values[k.places[n]] = raw
	}
	it.set("references", noneOfThem)
	it.set("mutators", noneOfThem)
	if it.waitsForPython() {
		it.values = slices.Clone(it.values)
	} else {
		it.seal(&w.written)
		w.texts.release(before)
	}
	return it
}

// waitsForPython reports whether Python has something to make of the resource.
func (it *item) waitsForPython() bool { return len(it.rarely().python) > 0 || it.id.IsZero() }

// text follows a path of attributes to a string. What is wrong with it is for
// Python to say.
func (w *writer) text(instance types.Instance, path string) (string, outcome) {
	var v types.Value = instance
	for name := range strings.SplitSeq(path, ".") {
		at, ok := v.(types.Instance)
		if !ok {
			return "", needPython
		}
		read := w.heap.Attribute(at, name)
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
func (w *writer) idValue(instance types.Instance, name string) (string, outcome) {
	read := w.heap.Attribute(instance, name)
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

// askFields has Python make what Go could not.
func (e *exporter) askFields(k *kind, made []*item) error {
	request := fieldsRequest{Type: k.Name, Module: k.Module, Failed: len(e.wrong.list) > 0}
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
		Rows []answered `json:"rows"`
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
			e.failed(row.Errors, asked[n].instance)
			continue
		}
		if err := asked[n].take(row); err != nil {
			return err
		}
	}
	return nil
}

// failed notes why fields of a resource cannot be made. Several may fail on one
// line of Python that all of them use: that is told once.
func (e *exporter) failed(fields []json.RawMessage, instance types.Instance) {
	var told []*Error
	for _, raw := range fields {
		err := asError(e.raised(raw))
		if !slices.ContainsFunc(told, err.repeatedBy) {
			told = append(told, err)
			e.wrong.add(err, instance)
		}
	}
}

// raised is an exception of a resource's class.
func (e *exporter) raised(told json.RawMessage) error {
	err := plugin.Raised(told)
	var raised *plugin.RequestError
	if !errors.As(err, &raised) {
		return err
	}
	return asError(err).hint("%s", raised.Hint(e.heap.Type))
}

// row asks for a resource. all are the fields that Python makes of its type.
func (e *exporter) row(it *item, all []string) (row [3]any, err error) {
	e.expect(it.instance.Entity())
	if row[0], err = e.host.Encode(it.instance, e.heap); err != nil {
		return row, err
	}
	if !it.id.IsZero() {
		row[1] = []string{it.id.Agent, it.id.Attribute, it.id.Value}
	}
	if python := it.rarely().python; !slices.Equal(python, all) {
		row[2] = python
	}
	return row, nil
}

// answered is what Python made of a resource.
type answered struct {
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
	Held       int                        `json:"held"`
	Types      []string                   `json:"types"` // of the references and mutators of one that is held
}

// take puts an answer into the resource.
func (it *item) take(row answered) error {
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
	it.more().reads, it.more().unfit = row.Reads, row.Unfit
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
		it.more().held, it.more().references = row.Held, row.Types
	}
	for _, name := range row.Undefined {
		it.set(name, json.RawMessage(undefinedText))
		it.more().undefined = append(it.more().undefined, name)
	}
	if row.References != nil {
		return it.refer(row.References, row.Mutators)
	}
	return nil
}

// idOf is an id that came in its parts.
func idOf(parts []string) (id intent.ResourceID, err error) {
	if len(parts) != 4 {
		return id, fmt.Errorf("export: an id has four parts, not %d", len(parts))
	}
	return intent.ResourceID{Type: parts[0], Agent: parts[1], Attribute: parts[2], Value: parts[3]}, nil
}

// expect has instances of an entity travel with all that is not a list of
// others: the methods of a resource class read most of it.
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

// refer puts references and mutators into the fields and notes their types.
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
			it.more().references = append(it.more().references, d.Type)
		}
	}
	return nil
}
