package intent

// ResourceFilter chooses resources of an environment by what they are and how they are. All of its parts must hold; the
// zero filter chooses everything, orphans included. The record turns it into SQL in one place, store/resourcefilter.go,
// so that a list, its counts, and an action on "all that match" speak of the same resources.
type ResourceFilter struct {
	Type  TextFilter
	Agent TextFilter
	Value TextFilter // of the id attribute

	Resources []ResourceID // one of these; nil: any
	Purged    *bool

	// Version chooses among the resources of this version, as they were in it; 0: among those that are or were
	// deployed. It excludes the parts below, which are about the present.
	Version int

	Status     ChoiceFilter[Status]
	Compliance ChoiceFilter[Compliance] // an orphan has none, so that it matches neither In nor NotIn
	LastRun    ChoiceFilter[HandlerResult]
	Blocked    ChoiceFilter[Blocked]
	Deploying  *bool
	Parked     *bool
	Orphan     *bool
}

// TextFilter compares a text. In a pattern, % stands for any text and _ for any one character, whatever the case.
type TextFilter struct {
	In, NotIn     []string // one of these, none of these; nil: any. An empty In matches nothing.
	Like, NotLike []string // all of these patterns, none of these
}

// ChoiceFilter compares one of a few words: one of In, none of NotIn; nil: any. An empty In matches nothing.
type ChoiceFilter[T ~string] struct {
	In, NotIn []T
}

// IsZero reports whether it lets everything through.
func (f TextFilter) IsZero() bool {
	return f.In == nil && len(f.NotIn) == 0 && len(f.Like) == 0 && len(f.NotLike) == 0
}

// IsZero reports whether it lets everything through.
func (f ChoiceFilter[T]) IsZero() bool { return f.In == nil && len(f.NotIn) == 0 }

// Conflicts names the parts that are set although they exclude Version, by the names that clients know.
func (f ResourceFilter) Conflicts() (names []string) {
	if f.Version == 0 {
		return nil
	}
	for _, part := range []struct {
		name string
		set  bool
	}{
		{"isOrphan", f.Orphan != nil}, {"isDeploying", f.Deploying != nil}, {"blocked", !f.Blocked.IsZero()},
		{"compliance", !f.Compliance.IsZero()}, {"lastHandlerRun", !f.LastRun.IsZero()},
		{"status", !f.Status.IsZero()}, {"parked", f.Parked != nil},
	} {
		if part.set {
			names = append(names, part.name)
		}
	}
	return names
}

// MatchedResources are the resources that a filter matches.
type MatchedResources struct {
	IDs      []ResourceID // sorted
	Versions []int        // to which they belong, ascending: an orphan to the last version that had it
	// All reports that these are all resources of their one version.
	All bool
}

// Agents lists the agents that they belong to, sorted like the resources.
func (m MatchedResources) Agents() []string {
	seen := make(map[string]bool)
	var names []string
	for _, id := range m.IDs {
		if !seen[id.Agent] {
			seen[id.Agent] = true
			names = append(names, id.Agent)
		}
	}
	return names
}

// Facet is one value of a property of resources, and how many resources have it.
type Facet struct {
	Of    FacetOf
	Value string
	Count int
}

// FacetOf is a property by which resources are counted.
type FacetOf string

// The properties by which resources are counted.
const (
	FacetType   FacetOf = "type"
	FacetAgent  FacetOf = "agent"
	FacetStatus FacetOf = "status"
	FacetParked FacetOf = "parked" // its values are true and false
)

// ComplianceReport says how one resource compares to its intent, and where it differs.
type ComplianceReport struct {
	ID         ResourceID
	ReportOnly bool // its handler reports what differs, and changes nothing
	State      ResourceState
	// Differs is what was found to differ from the intent, if it is not compliant and the handler told.
	Differs map[string]AttributeChange
}
