package intent

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// AuditOutcome is how an attempt to change something ended.
type AuditOutcome string

// The outcomes.
const (
	AuditDone    AuditOutcome = "done"
	AuditRefused AuditOutcome = "refused" // the person may not do it
	AuditFailed  AuditOutcome = "failed"
)

// AuditEntry records one attempt to change something. Entries are only ever added.
type AuditEntry struct {
	ID         int64 // set by the store
	At         time.Time
	Actor      string // the name of the person, or of what the token stands for
	Kind       string // what kind of sender: person, token …
	Credential string // the id of the session or token; no secret
	Address    string // where the request came from
	Door       string // api, console or command line
	Verb       string // such as environment.halt
	// Project and Environment are what it was done to; zero: the server. ProjectName and EnvironmentName are as they
	// were then.
	Project, Environment         uuid.UUID
	ProjectName, EnvironmentName string
	Subject                      string // what else it was about, such as the name of a setting
	Before, After                json.RawMessage
	Reason                       string
	Outcome                      AuditOutcome
	Problem                      string // why it was refused or failed
}
