package export

import (
	"encoding/json"
	"io"

	"ordain.dev/ordain/internal/diag"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
)

// DocumentFormat is the number in Document.Format. A reader refuses any other.
const DocumentFormat = 1

// Document is the result of a compile for the server: `ordain compile --export-json FILE` writes
// it as JSON, for a failed compile too. Equal input gives equal bytes, but for Python, Stages
// and Output, which describe the run.
type Document struct {
	Format  int  `json:"format"`
	Success bool `json:"success"`
	// Resources are sorted by id.
	Resources []Resource `json:"resources"`
	// Code says what an executor loads for each resource type in Resources; sorted by type.
	Code []intent.ResourceCode `json:"code"`
	// Files holds contents by the hex SHA-1 of the content: files that resources
	// name by hash (Exporter.upload_file) and the sources in Code.
	Files map[string][]byte `json:"files"`
	// Modules are the modules that the model loaded, with their versions.
	Modules map[string]string `json:"modules"`
	// Unknowns are the parameters that the model asked for and that have no value.
	Unknowns []intent.Unknown `json:"unknowns"`
	// ResourceSets are the names of all resource sets of the model, empty ones too; sorted.
	ResourceSets []string         `json:"resource_sets"`
	Pip          intent.PipConfig `json:"pip"`
	// Partial export: Resources holds the changed sets only.
	Partial bool `json:"partial,omitempty"`
	// RemovedSets are the sets to delete: asked for, or empty now.
	RemovedSets []string `json:"removed_sets,omitempty"`
	// UnmanagedAgents are the agents that the server is not to run itself: a std::AgentConfig of
	// the model sets autostart = false; sorted.
	UnmanagedAgents []string `json:"unmanaged_agents,omitempty"`
	// Settings are environment settings that project.yml asks for.
	Settings map[string]any `json:"settings,omitempty"`

	// Provenance says where every field of every resource was set; nil when nothing
	// was exported.
	Provenance *provenance.Table `json:"provenance,omitempty"`

	Diagnostics []diag.Diagnostic `json:"diagnostics"`
	Warnings    []diag.Diagnostic `json:"warnings"`
	// Output is what plug-ins printed, in order.
	Output []string `json:"output"`
	Python string   `json:"python"` // version of the compiler's interpreter, such as 3.11.7
	Stages []Stage  `json:"stages"`
}

// Resource is one exported resource; Intent makes the domain value of it.
type Resource struct {
	ID intent.ResourceID `json:"id"`
	// Attributes is canonical JSON: keys sorted, no blanks; without id, version and requires.
	Attributes json.RawMessage `json:"attributes"`
	// AttributeHash is the hex SHA-256 over Attributes, a newline, and the JSON of Requires.
	AttributeHash string `json:"attribute_hash"`
	// Requires is sorted and has no duplicates.
	Requires    []intent.ResourceID `json:"requires"`
	ResourceSet string              `json:"resource_set,omitempty"`
	// Undefined names the attributes whose value is not known; sorted. They read "<<undefined>>".
	Undefined     []string `json:"undefined,omitempty"`
	SendEvent     bool     `json:"send_event,omitempty"`
	ReceiveEvents bool     `json:"receive_events"`
	ReportOnly    bool     `json:"report_only,omitempty"`
	Purged        bool     `json:"purged,omitempty"`
}

// Intent returns the resource as a resource of the numbered version.
func (r Resource) Intent(version int) intent.Resource {
	return intent.Resource{
		ID:            r.ID,
		Version:       version,
		Attributes:    r.Attributes,
		AttributeHash: r.AttributeHash,
		Requires:      r.Requires,
		ResourceSet:   r.ResourceSet,
		Undefined:     r.Undefined,
		SendEvent:     r.SendEvent,
		ReceiveEvents: r.ReceiveEvents,
		Purged:        r.Purged,
	}
}

// Stage is the time that one stage of the compile took.
type Stage struct {
	Name         string  `json:"name"` // parse, plugins, evaluate, resources, code
	Milliseconds float64 `json:"ms"`
}

// NewDocument is an empty document.
func NewDocument() *Document {
	d := &Document{}
	d.fill()
	return d
}

// fill makes missing lists and maps empty, so that readers never find null.
func (d *Document) fill() {
	d.Format = DocumentFormat
	d.Resources = notNil(d.Resources)
	d.Code = notNil(d.Code)
	d.Unknowns = notNil(d.Unknowns)
	d.ResourceSets = notNil(d.ResourceSets)
	d.Diagnostics = notNil(d.Diagnostics)
	d.Warnings = notNil(d.Warnings)
	d.Output = notNil(d.Output)
	d.Stages = notNil(d.Stages)
	if d.Files == nil {
		d.Files = map[string][]byte{}
	}
	if d.Modules == nil {
		d.Modules = map[string]string{}
	}
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Write writes the document as JSON with a final newline.
func (d *Document) Write(w io.Writer) error {
	d.fill()
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

// Read reads a document that Write wrote.
func Read(r io.Reader) (*Document, error) {
	var d Document
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return nil, err
	}
	if d.Format != DocumentFormat {
		return nil, &FormatError{Got: d.Format}
	}
	return &d, nil
}
