package intent

import (
	"encoding/json"
	"time"
)

// TriggerModule is the trigger type of a push to a module's repository: the compile
// takes the newest versions of the modules.
const TriggerModule = "module"

// TriggerSource is the trigger type of a compile that finds out, and reports, whether
// the repository can be read: a look at it failed, or can be read again.
const TriggerSource = "source"

// TriggerPromotion is the trigger type of a commit that was promoted from the
// environment that this one follows.
const TriggerPromotion = "promotion"

// TriggerCluster is the trigger type of a compile because what the model sees of the
// environment's clusters has changed.
const TriggerCluster = "cluster"

// ClusterModule is the module of the model through which it sees clusters.
const ClusterModule = "ordain"

// Trigger says who or what asked for a compile.
type Trigger struct {
	Type    string // webhook, poll, watch, api, cli, console, recovery, schedule, module, promotion
	Message string // for people
}

// Compile is a request to compile and, after it has run, its report.
type Compile struct {
	ID          CompileID
	Environment EnvironmentID
	Requested   time.Time
	Started     *time.Time
	Completed   *time.Time
	Trigger     Trigger
	Metadata    map[string]any // as the client sent it; Trigger is derived from it
	Update      bool           // fetch from Git first
	Reinstall   bool           // delete the checkout and the virtual environment first
	Export      bool           // store a version; false compiles only
	Variables   map[string]string
	// Partial means that the model has only some resource sets; the others stay as
	// in the newest version, except RemovedSets.
	Partial     bool
	RemovedSets []string
	Success     *bool // nil until completed
	Version     *int  // the version that it stored, if any
	Revision    *Revision
	// Substitute is the compile that also answered this request, because several
	// equal requests were waiting.
	Substitute  *CompileID
	Diagnostics json.RawMessage // array of diag.Diagnostic; nil if there are none
	// SupersededBy is the request for a newer commit; this one was cancelled for it.
	SupersededBy *CompileID
	// Cancelled is the person who cancelled it; nil: nobody did. Until it is completed, it is being cancelled.
	Cancelled *Actor
}

// Moved reports whether a new commit caused the request, and not a person, a
// schedule or a client. Of several such requests only the newest matters.
func (c Compile) Moved() bool {
	switch c.Trigger.Type {
	case "webhook", "poll", "watch", TriggerPromotion:
		return c.Update && c.Export && !c.Reinstall && !c.Partial && len(c.Variables) == 0
	}
	return false
}

// Stage is a step of a compile.
type Stage struct {
	ID         CompileID // its own identity
	Compile    CompileID
	Name       string // one of the Stage names below
	Command    string // what ran, without secrets
	Started    time.Time
	Completed  *time.Time
	Output     string
	ErrOutput  string
	ReturnCode *int // nil while it runs
}

// Names of stages, in the order in which they run.
const (
	StageInit     = "Init"
	StageClone    = "Cloning repository"
	StageFetch    = "Pulling updates"
	StageVerify   = "Verifying commit"
	StageCheckout = "Checking out"
	StageClusters = "Reading clusters"
	StageVenv     = "Venv check"
	StageInstall  = "Installing modules"
	StageCompile  = "Recompiling configuration model"
	StageExport   = "Exporting resources"
	StageRelease  = "Releasing version"
)

// CompileEnd is how a compile ended.
type CompileEnd struct {
	Success     bool
	Version     *int // the version that it made; nil: none
	Diagnostics json.RawMessage
	At          time.Time
	// SupersededBy is the request for which it was cancelled; nil if it was not.
	SupersededBy *CompileID
	// Cancelled means that it was ended because a person cancelled it, as CancelCompile recorded.
	Cancelled bool
	// Notice is the notification that it causes; nil: none.
	Notice *Notice
}
