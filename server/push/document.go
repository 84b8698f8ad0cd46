package push

import (
	"encoding/json"
	"slices"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/intent"
)

// Document is what ordain export sends: what the compiler wrote, and where it ran. The contents of files are not part
// of it; they are uploaded before.
type Document struct {
	Document export.Document `json:"document"`
	From     Origin          `json:"from"`
	// AllowCode lets a partial export bring other code for types of resources that stay.
	AllowCode bool `json:"allow_handler_code_update,omitempty"`
}

// Origin is what a client says of its machine.
type Origin struct {
	User    string `json:"user,omitempty"`
	Host    string `json:"host,omitempty"`
	Client  string `json:"client,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Branch  string `json:"branch,omitempty"`
	Dirty   *bool  `json:"dirty,omitempty"`
	Message string `json:"message,omitempty"`
	// Started is when the compile began.
	Started time.Time `json:"started,omitzero"`
}

// Read checks a document. pushed is what the server knows of the sender.
func (d Document) Read(env intent.EnvironmentID, pushed intent.Pushed) (Version, error) {
	doc := &d.Document
	v := Version{NewVersion: intent.NewVersion{Environment: env, Pip: doc.Pip, Code: doc.Code}}
	switch {
	case doc.Format != export.DocumentFormat:
		return v, invalid("the document has the format %d, and this server reads %d", doc.Format, export.DocumentFormat)
	case !doc.Success:
		return v, invalid("the model did not compile, so there is nothing to deploy")
	case len(doc.Files) > 0:
		return v, invalid("the document has contents of files; upload them as files")
	}
	pushed.User, pushed.Host, pushed.Client = d.From.User, d.From.Host, d.From.Client
	pushed.Commit, pushed.Branch, pushed.Dirty = d.From.Commit, d.From.Branch, d.From.Dirty
	pushed.Message = d.From.Message
	var err error
	if pushed, err = checkPushed(pushed); err != nil {
		return v, err
	}
	if v.Files, err = checkCode(doc.Code); err != nil {
		return v, err
	}
	if err := checkPip(doc.Pip); err != nil {
		return v, err
	}
	if doc.Partial {
		v.Partial = &intent.PartialChange{Removed: doc.RemovedSets, AllowCode: d.AllowCode}
		for _, set := range doc.RemovedSets {
			if err := checkSet(set); err != nil {
				return v, err
			}
		}
	}
	if err := d.resources(&v); err != nil {
		return v, err
	}
	if v.Unknowns = doc.Unknowns; len(doc.Unknowns) > 100_000 {
		return v, invalid("there are more than 100000 unknown values")
	}
	if doc.Provenance != nil {
		if err := doc.Provenance.Check(); err != nil {
			return v, invalid("%v", err)
		}
		if v.Origins, err = doc.Provenance.Pack(); err != nil {
			return v, invalid("%v", err)
		}
	}
	v.Provenance.Pushed = &pushed
	v.Provenance.CompilerPython, v.Provenance.Modules = plain(short(doc.Python)), map[string]string{}
	for name, version := range doc.Modules {
		if err := checkModule(name); err != nil {
			return v, err
		}
		v.Provenance.Modules[name] = plain(short(version))
	}
	for _, agent := range doc.UnmanagedAgents {
		v.Provenance.UnmanagedAgents = append(v.Provenance.UnmanagedAgents, plain(short(agent)))
	}
	slices.Sort(v.Provenance.UnmanagedAgents)
	return v, checkClosed(v.NewVersion)
}

func short(text string) string { return text[:min(maxName, len(text))] }

func (d Document) resources(v *Version) error {
	v.Resources = make([]intent.Resource, 0, len(d.Document.Resources))
	known := make(map[intent.ResourceID]bool, len(d.Document.Resources))
	for _, given := range d.Document.Resources {
		id, _, err := parseID(given.ID.String())
		if err != nil {
			return err
		}
		if known[id] {
			return invalid("the version has the resource %s twice", id)
		}
		known[id] = true
		var attributes map[string]json.RawMessage
		if err := json.Unmarshal(given.Attributes, &attributes); err != nil {
			return invalid("the attributes of %s must be an object", id)
		}
		for _, required := range given.Requires {
			if _, _, err := parseID(required.String()); err != nil {
				return err
			}
		}
		r, err := seal(id, attributes, slices.Clone(given.Requires))
		if err != nil {
			return err
		}
		if given.ResourceSet != "" {
			if err := checkSet(given.ResourceSet); err != nil {
				return err
			}
		}
		r.ResourceSet = given.ResourceSet
		if len(given.Undefined) > len(attributes) {
			return invalid("%s has more undefined attributes than attributes", id)
		}
		r.Undefined = given.Undefined
		v.Resources = append(v.Resources, r)
	}
	return nil
}

// Stages returns how long the parts of the compile took, as stages of its report, which ended at a time.
func (d Document) Stages(compile intent.CompileID, end time.Time) (stages []intent.Stage, started time.Time) {
	const most = 20
	var total float64
	list := d.Document.Stages
	for _, s := range list[:min(most, len(list))] {
		total += max(0, min(s.Milliseconds, 86_400_000))
	}
	started = end.Add(-time.Duration(total * float64(time.Millisecond)))
	at := started
	for _, s := range list[:min(most, len(list))] {
		from := at
		at = at.Add(time.Duration(max(0, min(s.Milliseconds, 86_400_000)) * float64(time.Millisecond)))
		stages = append(stages, stage(compile, plain(short(s.Name)), "ran on the sender's machine", from, at))
	}
	return stages, started
}
