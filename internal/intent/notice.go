package intent

import (
	"time"

	"github.com/google/uuid"
)

// Severity is how important a notice is.
type Severity string

// Severities, as the API names them.
const (
	SeverityMessage Severity = "message"
	SeverityInfo    Severity = "info"
	SeveritySuccess Severity = "success"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// Notice is something that people should know.
type Notice struct {
	Severity Severity
	Title    string
	Message  string
	// URI is the API's address of what it is about.
	URI string
	// Compile is the compile that it is about, or nil.
	Compile *CompileID
	// Quiet means that it rings no bell: it is recorded as one that is read.
	Quiet bool
}

// Notification is a recorded notice. Notices with the same title about the same thing
// are one notification until a person reads it.
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
