package intent

import (
	"encoding/json"
	"time"
)

// TriggerModule is the type of triggers of modules whose repositories were
// pushed to: their newest versions are asked for.
const TriggerModule = "module"

// TriggerPromotion is the type of triggers of commits that come from the
// environment that is followed.
const TriggerPromotion = "promotion"

// Trigger says who or what asked for a compile.
type Trigger struct {
	Type    string // webhook, poll, watch, api, cli, console, recovery, schedule, module, promotion
	Message string // for people
}

// Compile is one request to compile and, once it ran, its report.
type Compile struct {
	ID          CompileID
	Environment EnvironmentID
	Requested   time.Time
	Started     *time.Time
	Completed   *time.Time
	Trigger     Trigger
	Metadata    map[string]any // as the client sent it; Trigger is drawn from it
	Update      bool           // fetch from Git first
	Reinstall   bool           // throw away checkout and virtual environment first
	Export      bool           // store a version; false compiles only
	Variables   map[string]string
	// Partial: the model holds some resource sets only, and the newest version
	// keeps the rest; RemovedSets go.
	Partial     bool
	RemovedSets []string
	Success     *bool // nil until completed
	Version     *int  // the version it stored, when it stored one
	Revision    *Revision
	// Substitute is the compile whose run answered this request too, when
	// several equal requests waited.
	Substitute  *CompileID
	Diagnostics json.RawMessage // array of diag.Diagnostic; nil when none
	// SupersededBy is the request of a newer commit for which this one was cancelled.
	SupersededBy *CompileID
}

// Moved tells that it was asked for because a commit came, not by a person, a
// schedule or a client: of several such requests only the newest matters.
func (c Compile) Moved() bool {
	switch c.Trigger.Type {
	case "webhook", "poll", "watch", TriggerPromotion:
		return c.Update && c.Export && !c.Reinstall && !c.Partial && len(c.Variables) == 0
	}
	return false
}

// Stage is one step of a compile: a line of its report.
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

// Names of stages, in the order in which they run. Pages and tests use these.
const (
	StageInit     = "Init"
	StageClone    = "Cloning repository"
	StageFetch    = "Pulling updates"
	StageVerify   = "Verifying commit"
	StageCheckout = "Checking out"
	StageVenv     = "Venv check"
	StageInstall  = "Installing modules"
	StageCompile  = "Recompiling configuration model"
	StageExport   = "Exporting resources"
	StageRelease  = "Releasing version"
)

// CompileEnd is how a compile ended.
type CompileEnd struct {
	Success     bool
	Version     *int // that it made; nil: none
	Diagnostics json.RawMessage
	At          time.Time
	// SupersededBy is the request for which it was cancelled; nil: it was not.
	SupersededBy *CompileID
	// Notice is what people should hear of it; nil: nothing.
	Notice *Notice
}
