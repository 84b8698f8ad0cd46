package intent

import (
	"encoding/json"
	"time"
)

// VersionStatus is the status of a version in its environment.
type VersionStatus string

// A version starts as a candidate. One version is active, and those before it are retired.
const (
	VersionCandidate VersionStatus = "candidate"
	VersionActive    VersionStatus = "active"
	VersionRetired   VersionStatus = "retired"
	VersionSkipped   VersionStatus = "skipped_candidate" // a later one was released first
)

// Version is what a compile exported. When it is released, it becomes the intent.
type Version struct {
	Environment EnvironmentID
	Number      int
	Created     time.Time
	Released    *time.Time
	Status      VersionStatus
	Total       int // number of resources
	Provenance  Provenance
	// Preview means that it was compiled for a dry run and is never released.
	Preview bool
	// Hold says why it was not released automatically; nil: it was not held.
	Hold *Hold
	// Confirmed says who released it in spite of the hold; nil: nobody did.
	Confirmed *Confirmation
}

// Held reports whether the version waits for a person to confirm it.
func (v Version) Held() bool { return v.Status == VersionCandidate && v.Hold != nil }

// Provenance says where a version came from, in enough detail to make it again.
type Provenance struct {
	Compile        CompileID         `json:"compile"`
	Commit         string            `json:"commit"`
	Branch         string            `json:"branch,omitempty"`
	Author         string            `json:"author,omitempty"`
	Email          string            `json:"email,omitempty"`
	Subject        string            `json:"subject,omitempty"`
	CommitTime     time.Time         `json:"commit_time,omitzero"`
	Signer         string            `json:"signer,omitempty"`     // if the environment requires signatures
	SignerKey      string            `json:"signer_key,omitempty"` // its fingerprint
	Trigger        Trigger           `json:"trigger"`
	Modules        map[string]string `json:"modules,omitempty"` // module name to version
	CompilerPython string            `json:"compiler_python,omitempty"`
	Ordain         string            `json:"ordain,omitempty"` // version of this program
	Variables      map[string]string `json:"variables,omitempty"`
	// Clusters identifies what the model could see of the environment's clusters; empty if it does not import ordain.
	Clusters string `json:"clusters,omitempty"`
	// UnmanagedAgents are the agents that the server does not run itself, because a
	// std::AgentConfig of the model sets autostart = false; sorted.
	UnmanagedAgents []string `json:"unmanaged_agents,omitempty"`
	// PartialBase is the version that a partial export was merged with; 0: it was not partial.
	PartialBase int `json:"partial_base,omitempty"`
	// RolledBack is set if it has the content of an earlier version; the rest of its
	// provenance is that version's. It is nil if it came from a compile.
	RolledBack *RollBack `json:"rolled_back,omitempty"`
	// Folder is set for a version that `ordain deploy` made of a project folder: it is not from a commit.
	Folder *FolderOrigin `json:"folder,omitempty"`
	// Pushed is set if it was compiled on another machine; then it has no commit.
	Pushed *Pushed `json:"pushed,omitempty"`
}

// MaxAttributes is how large the attributes of one resource may be, in bytes of JSON.
// Tasks and their results, which may contain them twice, must fit a worker's frame.
const MaxAttributes = 16 << 20

// Resource is a resource of a version.
type Resource struct {
	ID         ResourceID
	Version    int
	Attributes json.RawMessage // object, without id, version and requires
	// AttributeHash is the hex SHA-256 of the canonical attributes and requires:
	// equal hashes mean that nothing has to be deployed again.
	AttributeHash string
	Requires      []ResourceID
	ResourceSet   string   // empty: in no set
	Undefined     []string // attributes whose value is not known yet; a resource with any is not deployed
	SendEvent     bool     // dependents are deployed again when this one changed
	ReceiveEvents bool
	Purged        bool // desired state is absence
	// KeptRequires is what a purged resource required in the last released version in
	// which it was not purged. It is set only when the active version is read from the
	// store.
	KeptRequires []ResourceID
}

// NewVersion is what a compile passes to the store.
type NewVersion struct {
	Environment EnvironmentID
	Provenance  Provenance
	Resources   []Resource
	// Code holds, for each resource type, the code that an executor loads to handle it.
	Code []ResourceCode
	// Pip holds the index settings of the project, part of the blueprint.
	Pip      PipConfig
	Unknowns []Unknown
	// Partial is set if Resources has only some resource sets, to be merged with the
	// newest version. It is nil if Resources is complete.
	Partial *PartialChange
	// Origins says where every value was set, packed by internal/provenance; nil if
	// unknown.
	Origins []byte
	// Preview means that it was made for a dry run and is never released.
	Preview bool
	// Clusters are the manifests of the commit's cluster files by name, as JSON; nil: there are none, and there never
	// were.
	Clusters json.RawMessage
	// Number is the number that was reserved for it; 0: it gets the next one.
	Number int
	// Elsewhere is the report of the compile on another machine, stored with the version; nil: the server compiled it.
	Elsewhere *Elsewhere
}

// Elsewhere is the report of a compile on another machine. It has ended.
type Elsewhere struct {
	Compile Compile
	Stages  []Stage
}

// PartialChange says how a partial export changes the version before it.
type PartialChange struct {
	Removed []string // resource sets to remove
	// AllowCode lets it have other code for types of resources that stay.
	AllowCode bool
}

// Unknown is a parameter that the model asked for and that has no value yet.
type Unknown struct {
	Parameter string     `json:"parameter"`
	Resource  ResourceID `json:"resource,omitzero"`
	Source    string     `json:"source"`
}
