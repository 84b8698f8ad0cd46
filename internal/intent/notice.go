package intent

import (
	"time"

	"github.com/google/uuid"
)

// Severity is how much a notice matters.
type Severity string

// Severities, as the API names them.
const (
	SeverityMessage Severity = "message"
	SeverityInfo    Severity = "info"
	SeveritySuccess Severity = "success"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// Notice is something that people should hear of.
type Notice struct {
	Severity Severity
	Title    string
	Message  string
	// URI leads to what it is about, as the API addresses it.
	URI string
	// Compile is the run that it is about; nil for none.
	Compile *CompileID
}

// Notification is a notice on record. The same title about the same thing is
// one notification until somebody reads it.
type Notification struct {
	ID          uuid.UUID
	Environment EnvironmentID
	Notice
	Created time.Time // the first time
	Last    time.Time
	Times   int
	Read    bool
	Cleared bool
}
