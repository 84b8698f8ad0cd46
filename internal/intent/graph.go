package intent

// GraphScope says which resources of the active version a graph is of. Empty fields allow all.
type GraphScope struct {
	Agent, Type string
	Set         string   // a resource set: in models of services, what one instance made
	Statuses    []Status // any of these
}

// GraphNode is a resource in a graph.
type GraphNode struct {
	ID     ResourceID
	Status Status
	Set    string
	Parked bool
	// Cause means that what requires it cannot be deployed because of it: it failed, is parked, or has a value that is
	// not known.
	Cause bool
	// Stuck means that it cannot be deployed because of something that it requires.
	Stuck    bool
	Requires int // how many resources it requires
}

// GraphBlocker is a resource that keeps another one, Of, from being deployed.
type GraphBlocker struct {
	GraphNode
	Of ResourceID
}

// GraphCause is what a resource waits for in the end.
type GraphCause struct {
	GraphNode
	// Via is the way to it: what the resource requires comes first. It is empty if the resource requires the cause.
	Via []ResourceID
}

// GraphEdge says that To requires From: From is deployed first.
type GraphEdge struct{ From, To ResourceID }

// GraphGroupKey names a group of resources. An empty agent or type stands for all.
type GraphGroupKey struct{ Agent, Type string }

// GraphGrouping says what the resources of a group have in common.
type GraphGrouping struct{ Agent, Type bool }

// GraphGroup is a group of resources.
type GraphGroup struct {
	GraphGroupKey
	Total  int
	Counts map[Status]int
	Parked int
	Cause  int
	Stuck  int
}

// GraphGroupEdge says that so many resources of To require some of From.
type GraphGroupEdge struct {
	From, To GraphGroupKey
	Edges    int
}
