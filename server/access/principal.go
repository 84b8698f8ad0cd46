package access

import (
	"fmt"

	"github.com/google/uuid"
)

// Kind is what kind of sender a principal is.
type Kind string

// The kinds.
const (
	Person      Kind = "person"      // with a session
	Token       Kind = "token"       // a personal token: its owner, within the token's grants
	Environment Kind = "environment" // a token of an environment, for clients such as its compiler
	Job         Kind = "job"         // a CI job whose issuer is trusted
	Handler     Kind = "handler"     // a handler of an environment, through its executor
	Local       Kind = "local"       // anybody on this machine, while authentication is off
)

// Principal is who sends a request, with what they may do. The zero Principal is a stranger.
type Principal struct {
	Kind Kind
	// Name is shown in the record: a user name, or what the token says.
	Name string
	// User is the user's id; zero for principals that are no users.
	User uuid.UUID
	// Credential is the id of the session or token that proved it, for the audit trail; it is no secret.
	Credential string
	Bindings   []Binding
	// Within limits what the bindings allow, for tokens with a scope of their own: a verb must be granted by one of
	// these, too. Empty: no further limit.
	Within []Binding
	// Only is the only environment that the principal may work with, if it is set. Requests about any other are
	// refused in the same way, whether it exists or not.
	Only uuid.UUID
}

// Known reports whether the principal proved who it is.
func (p Principal) Known() bool { return p.Kind != "" }

// Binding gives a role in a scope.
type Binding struct {
	Role  Role
	Scope Scope
	// Through says how the principal came by it, such as "group netops"; empty: directly.
	Through string
}

// Scope is where a binding holds. At most one field is set; the zero Scope is the whole server.
type Scope struct {
	Project     uuid.UUID
	Environment uuid.UUID
	Tag         string // all environments with this tag
}

// Target is what a verb is done to. The zero Target is the server itself. The target of a verb on an environment has
// the environment's project and tags, too.
type Target struct {
	Project     uuid.UUID
	Environment uuid.UUID
	Tags        []string
}

// Covers reports whether a binding with this scope holds for a target.
func (s Scope) Covers(t Target) bool {
	switch {
	case s == Scope{}:
		return true
	case s.Project != uuid.Nil:
		return s.Project == t.Project
	case s.Environment != uuid.Nil:
		return s.Environment == t.Environment
	}
	for _, tag := range t.Tags {
		if tag == s.Tag {
			return true
		}
	}
	return false
}

// String names the scope in words, with ids.
func (s Scope) String() string {
	switch {
	case s.Project != uuid.Nil:
		return "the project " + s.Project.String()
	case s.Environment != uuid.Nil:
		return "the environment " + s.Environment.String()
	case s.Tag != "":
		return "environments with the tag " + s.Tag
	}
	return "the whole server"
}

// Decision says whether a verb is allowed.
type Decision struct {
	Allowed bool
	// Visible says whether the principal may know that the target exists. A door answers a request about an invisible
	// target as if it did not exist.
	Visible bool
	// Reason is a sentence for people: which binding allows it, or what is missing.
	Reason string
}

// Decide decides whether a principal may do a verb to a target.
func (p Principal) Decide(v Verb, t Target) Decision {
	d, ok := v.Define()
	switch {
	case !ok:
		return Decision{Reason: fmt.Sprintf("there is no verb %q", v)}
	case d.Label == Public:
		return Decision{Allowed: true, Visible: true, Reason: "everybody may do this"}
	case !p.Known():
		return Decision{Reason: "nobody is logged in"}
	case (d.Verb == ManageSelf || d.Verb == ChangePassword) && p.Kind != Person && p.Kind != Local:
		// Otherwise a token could make others that outlive it, or log in.
		return Decision{Visible: true, Reason: "only a person who has logged in may do this, not a token"}
	case d.Label == Open:
		return Decision{Allowed: true, Visible: true, Reason: "everybody who is logged in may do this"}
	}
	visible := p.Sees(t)
	switch d.Reach { // an administrator of an environment does not administer its project
	case OnProject:
		t = Target{Project: t.Project}
	case OnServer:
		t = Target{}
	}
	by, ok := grant(p.Bindings, d, t)
	if !ok {
		return Decision{Visible: visible, Reason: fmt.Sprintf(
			"no role of %s allows %s (%s) on %s", p.Name, v, d.Label, t.words())}
	}
	if len(p.Within) > 0 {
		if _, ok := grant(p.Within, d, t); !ok {
			return Decision{Visible: visible, Reason: fmt.Sprintf(
				"%s may do this, but this token may not: it lacks %s (%s) on %s", p.Name, v, d.Label, t.words())}
		}
	}
	through := ""
	if by.Through != "" {
		through = ", through " + by.Through
	}
	return Decision{Allowed: true, Visible: visible, Reason: fmt.Sprintf(
		"%s has the role %s on %s%s; it allows %s", p.Name, by.Role.Name, by.Scope, through, d.Label)}
}

// Lacks returns a verb that a role allows on a target and the principal does not; ok is false if there is none.
func (p Principal) Lacks(r Role, t Target) (v Verb, ok bool) {
	for _, d := range Verbs {
		beyond := d.Reach == OnServer && (t.Project != uuid.Nil || t.Environment != uuid.Nil) ||
			d.Reach == OnProject && t.Environment != uuid.Nil
		if r.Grants(d) && !beyond && !p.Decide(d.Verb, t).Allowed {
			return d.Verb, true
		}
	}
	return "", false
}

// Sees reports whether a principal may know that a target exists: any role there will do. Everybody who is logged in
// knows of the server.
func (p Principal) Sees(t Target) bool {
	if !p.Known() {
		return false
	}
	if t.Project == uuid.Nil && t.Environment == uuid.Nil {
		return true
	}
	for _, b := range p.Bindings {
		if b.Scope.Covers(t) && (len(p.Within) == 0 || anyCovers(p.Within, t)) {
			return true
		}
	}
	return false
}

// SeesAll reports whether a principal sees every project, so that lists need no filter.
func (p Principal) SeesAll() bool {
	everywhere := func(bindings []Binding) bool {
		for _, b := range bindings {
			if b.Scope == (Scope{}) {
				return true
			}
		}
		return false
	}
	return everywhere(p.Bindings) && (len(p.Within) == 0 || everywhere(p.Within))
}

func anyCovers(bindings []Binding, t Target) bool {
	for _, b := range bindings {
		if b.Scope.Covers(t) {
			return true
		}
	}
	return false
}

// grant returns the first binding that allows a verb on a target.
func grant(bindings []Binding, d Definition, t Target) (Binding, bool) {
	for _, b := range bindings {
		if b.Role.Grants(d) && b.Scope.Covers(t) {
			return b, true
		}
	}
	return Binding{}, false
}

// words names a target for a sentence.
func (t Target) words() string {
	switch {
	case t.Environment != uuid.Nil:
		return "the environment " + t.Environment.String()
	case t.Project != uuid.Nil:
		return "the project " + t.Project.String()
	}
	return "the server"
}
