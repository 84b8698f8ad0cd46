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
	DriftHealed     DriftEnding = "healed"     // a deployment put it right
	DriftGone       DriftEnding = "gone"       // it was right again by itself
	DriftSuperseded DriftEnding = "superseded" // the model wants something else
)

// Drift is an attribute that was found to be other than the intent, though the
// intent had been brought about.
type Drift struct {
	ID        ActionID
	Resource  ResourceID
	Attribute string
	Desired   json.RawMessage
	Found     json.RawMessage
	Version   int
	Since     time.Time // when it was noticed
	Seen      time.Time // when it was last looked at
	Ended     *time.Time
	Ending    DriftEnding
}

// DriftReport is what one run of a handler says about drift of its resource.
type DriftReport struct {
	// Found are the attributes that were not as desired.
	Found map[string]AttributeChange
	// Open: what was found is drift, and is recorded if it is not yet. Else only
	// records that are open are brought to an end.
	Open bool
	// Healed: what was found was put right.
	Healed bool
	// Complete: the run saw the whole resource, so what it did not find is gone.
	Complete bool
}

// Breaker keeps deployments from an agent whose target cannot be reached. It
// is open while Since is set; the zero value is closed.
type Breaker struct {
	Since    *time.Time
	ProbeAt  *time.Time    // when one deployment tries whether the target is back
	Pause    time.Duration // before that probe
	Failures int           // in a row
}

// Open tells whether deployments are kept back.
func (b Breaker) Open() bool { return b.Since != nil }
