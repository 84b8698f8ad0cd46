package access

import (
	"time"

	"github.com/google/uuid"
)

// The ways in which users prove who they are.
const (
	ByPassword = "database" // with a password of which the server keeps a hash
	ByOIDC     = "oidc"     // at an identity provider
)

// User is a person who may log in.
type User struct {
	ID            uuid.UUID
	Name          string
	Method        string // ByPassword or ByOIDC
	Disabled      bool
	Administrator bool     // of the whole server, by a binding of their own
	Groups        []string // that the identity provider named at the last login
	Created       time.Time
	LastLogin     *time.Time
}

// SubjectKind is the kind of what a role is given to.
type SubjectKind string

// The kinds of subjects.
const (
	OfUser  SubjectKind = "user"
	OfGroup SubjectKind = "group"
	OfToken SubjectKind = "token"
)

// Grant is a binding as it is stored: who has which role where.
type Grant struct {
	ID      uuid.UUID
	Kind    SubjectKind
	User    uuid.UUID // of a user
	Subject string    // the name of the user or the group, or the id of the token
	Role    string
	Scope   Scope
	Created time.Time
	By      string // who gave it
}

// Session is a login that has not ended.
type Session struct {
	Hash     string // of its token
	ID       uuid.UUID
	User     uuid.UUID
	Client   string // ConsoleClient or APIClient
	Address  string // from which the person logged in
	Agent    string // the program that did it
	Created  time.Time
	Seen     time.Time // about; it is not written down for each request
	Expires  time.Time // unless it is used before
	Deadline time.Time // however much it is used
}

// The clients that sessions are for.
const (
	ConsoleClient = "console" // its token is in a cookie
	APIClient     = "api"     // its token is in the header Authorization
)
