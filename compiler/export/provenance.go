package export

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/lineage"
	"ordain.dev/ordain/internal/provenance"
)

// function is a Python function that computes a field.
type function struct {
	File string
	Line int
	Name string
}

// UnmarshalJSON reads [file, line, name].
func (f *function) UnmarshalJSON(raw []byte) error {
	parts := []any{&f.File, &f.Line, &f.Name}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) != 3 {
		return errors.New("a function is a file, a line and a name")
	}
	return nil
}

// read is an attribute of the model that a function read.
type read struct {
	Instance  uint64
	Attribute string
}

// UnmarshalJSON reads [instance, attribute].
func (r *read) UnmarshalJSON(raw []byte) error {
	parts := []any{&r.Instance, &r.Attribute}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return errors.New("a read is an instance and an attribute")
	}
	return nil
}

// maxReads bounds how many reads of one function are recorded.
const maxReads = 30

// provenance records where the fields of all resources were set.
func (e *exporter) provenance() error {
	if e.in.Result == nil || e.in.ModelOnly {
		return nil
	}
	p := &provenancer{exporter: e, Tracer: lineage.New(e.in.Result), labels: map[uint64]string{}}
	p.Template = p.templateText
	for _, it := range e.items {
		p.resource(it)
	}
	e.doc.Provenance = p.Table()
	return nil
}

type provenancer struct {
	*exporter
	*lineage.Tracer
	entry  provenance.Entry
	labels map[uint64]string
}

func (p *provenancer) resource(it *item) {
	instance, ok := it.instance.(*eval.Instance)
	if !ok {
		return
	}
	for _, f := range it.kind.Fields {
		name, how := f[0], f[1]
		switch function, computed := it.kind.Functions[name]; {
		case how == "python" && computed:
			p.function(it, name, function)
		case instance.Entity().Attribute(name) != nil:
			p.Attribute(&p.entry, name, instance, name, false)
		default:
			p.BuiltIn(&p.entry, name)
		}
	}
	if len(it.requires) > 0 {
		p.Attribute(&p.entry, "requires", instance, "requires", false)
	}
	p.Add(it.id.String(), &p.entry)
}

// function records a field that Python computed, and what the function read for it.
func (p *provenancer) function(it *item, name string, f function) {
	p.Function(&p.entry, name, provenance.Place{File: p.shown(f.File), Line: f.Line}, f.Name)
	for n, r := range it.reads[name] {
		if n == maxReads {
			break
		}
		if r.Instance < 1 || r.Instance > uint64(len(p.in.Result.Instances)) {
			continue
		}
		of := p.in.Result.Instances[r.Instance-1]
		label := r.Attribute
		if of != it.instance {
			label = p.label(of) + "." + r.Attribute
		}
		p.Attribute(&p.entry, label, of, r.Attribute, true)
	}
}

func (p *provenancer) label(i *eval.Instance) string {
	label, ok := p.labels[i.InstanceID()]
	if !ok {
		label = lineage.Label(i)
		p.labels[i.InstanceID()] = label
	}
	return label
}

// shown shortens a path: relative to the project, or to the folder of packages.
func (p *provenancer) shown(path string) string {
	if short := lineage.Shown(path); short != path {
		return short
	}
	if dir, err := filepath.Abs(p.in.ProjectDir); err == nil && p.in.ProjectDir != "" {
		if relative, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(relative) {
			return relative
		}
	}
	return path
}
