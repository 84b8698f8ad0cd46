package access

import "slices"

// Role is a named set of things that may be done.
type Role struct {
	Name        string
	Description string
	Labels      []Label
	Verbs       []Verb // further ones
	BuiltIn     bool   // it can be neither changed nor deleted
}

// The roles that every server has.
var (
	Viewer = Role{Name: "viewer", BuiltIn: true, Labels: []Label{Read},
		Description: "sees everything, changes nothing"}
	Operator = Role{Name: "operator", BuiltIn: true, Labels: []Label{Read, Operate},
		Description: "also compiles, deploys, halts and pauses"}
	Maintainer = Role{Name: "maintainer", BuiltIn: true, Labels: []Label{Read, Operate, WriteIntent},
		Description: "also decides what is deployed: settings, sources, releases, rollbacks, promotions"}
	Administrator = Role{Name: "administrator", BuiltIn: true, Labels: []Label{Read, Operate, WriteIntent, Administer},
		Description: "also deletes, and decides what people may do"}
)

// BuiltIn lists the roles that every server has, the weakest first.
var BuiltIn = []Role{Viewer, Operator, Maintainer, Administrator}

// Grants reports whether a role allows a verb, where the role holds.
func (r Role) Grants(d Definition) bool {
	return slices.Contains(r.Labels, d.Label) || slices.Contains(r.Verbs, d.Verb)
}
