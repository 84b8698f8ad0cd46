package solve

import "ordain.dev/ordain/server/cluster/catalogue"

// Node is a machine of a layout.
type Node struct {
	Number       int      // from 1000; it is never used again in the same cluster
	Services     []string // sorted
	HardwareType string
	ImageType    string
}

// Request is what a layout is wanted for.
type Request struct {
	Template  *catalogue.Template // without parents and includes
	Catalogue *catalogue.Catalogue
	Size      int
	Services  []string // empty: those of the template's defaults
	Provider  string   // empty: the template's
	// HardwareType and ImageType are for all new nodes; empty: the template's default is preferred, and others are
	// used where a service needs them.
	HardwareType, ImageType string
	// Existing are the nodes there are. They keep their number, hardware and image, and the services that are still
	// wanted. A smaller size takes away those nodes whose loss changes least, the youngest of them first.
	Existing []Node
	// Next is the number of the next new node; 1000 when zero.
	Next int
}

// Contradiction says why no layout exists.
type Contradiction struct {
	// Reasons are a smallest set of conditions that cannot hold together: without any one of them the others could.
	Reasons []string
	Hint    string // what to change, if that is clear
}
