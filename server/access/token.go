package access

import (
	"time"

	"github.com/google/uuid"
)

// PersonalToken lets programs act for a person, within roles and a scope of its own.
type PersonalToken struct {
	ID       uuid.UUID
	User     uuid.UUID // who made it
	Name     string
	Roles    []string
	Scope    Scope
	Created  time.Time
	Expires  time.Time
	LastUsed *time.Time // about; it is not written down for each request
}

// The types of clients that a token of an environment is for.
const (
	APIClients      = "api"
	CompilerClients = "compiler"
	AgentClients    = "agent"
)

// EnvironmentToken lets programs work in one environment.
type EnvironmentToken struct {
	ID          uuid.UUID
	Environment uuid.UUID
	ClientTypes []string
	Idempotent  bool // asking for it again returns the same token
	By          string
	Issued      time.Time
	Expires     *time.Time // nil: never
	Revoked     *time.Time
	LastUsed    *time.Time // about
}

// Trust lets the jobs of a CI system act in a project: those whose identity token has the right claims.
type Trust struct {
	ID          uuid.UUID
	Project     uuid.UUID
	Name        string
	Issuer      string
	Audience    string
	Claims      map[string]string // a pattern for each claim that is looked at
	Role        string
	Environment uuid.UUID     // where the role holds; uuid.Nil: in the whole project
	Lifetime    time.Duration // of the tokens that jobs get
	Created     time.Time
	By          string
	LastUsed    *time.Time
}

// JobToken is what a job got for its identity token.
type JobToken struct {
	ID      uuid.UUID
	Trust   uuid.UUID
	Name    string // what the identity token says of the job
	Expires time.Time
}
