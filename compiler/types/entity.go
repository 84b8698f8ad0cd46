package types

// Entity is the type of instances: a name with attributes, relations, parents,
// indexes and implementations. The definition phase of package eval fills it.
type Entity struct {
	Name string // fully qualified, such as std::Host
}
