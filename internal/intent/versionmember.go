package intent

// VersionMember is a resource of a version, with what became of it. Its standing is a status if the resource is
// deployed as this version has it; otherwise it is one of those below.
type VersionMember struct {
	ID       ResourceID
	Standing Status
}

// Standings of the resources that are not deployed as a version has them.
const (
	// MemberOther says that the deployed version wants something else of the resource.
	MemberOther Status = "other"
	// MemberAbsent says that the deployed version does not have the resource.
	MemberAbsent Status = "absent"
)
