package intent

import (
	"encoding/json"
	"time"
)

// DriftEnding is how drift ended.
type DriftEnding string

// Drift is open until it ends in one of three ways.
const (
	DriftOpen       DriftEnding = ""
	DriftHealed     DriftEnding = "healed"     // a deployment corrected it
	DriftGone       DriftEnding = "gone"       // the attribute became correct by itself
	DriftSuperseded DriftEnding = "superseded" // the model wants something else
)

// Drift is an attribute that differs from the intent although the intent had been
// deployed.
type Drift struct {
	ID        ActionID
	Resource  ResourceID
	Attribute string
	Desired   json.RawMessage
	Found     json.RawMessage
	Version   int
	Since     time.Time // when it was noticed
	Seen      time.Time // when it was last checked
	Ended     *time.Time
	Ending    DriftEnding
}

// DriftReport is what a run of a handler found out about drift of its resource.
type DriftReport struct {
	// Found holds the attributes that were not as desired.
	Found map[string]AttributeChange
	// Open means that Found is drift, to be recorded if it is not yet. Otherwise the
	// report can only end open records.
	Open bool
	// Healed means that the run corrected what it found.
	Healed bool
	// Complete means that the run read the whole resource, so that drift which it did
	// not find is gone.
	Complete bool
}

// Breaker stops deployments to an agent whose target is unreachable. It is open
// while Since is set; the zero value is closed.
type Breaker struct {
	Since    *time.Time
	ProbeAt  *time.Time    // when a deployment probes whether the target is reachable again
	Pause    time.Duration // before that probe
	Failures int           // in a row
}

// Open reports whether deployments are stopped.
func (b Breaker) Open() bool { return b.Since != nil }
