package intent

import "time"

// ClusterResourceRef names a version of a file that plug-ins use.
type ClusterResourceRef struct {
	Project ProjectID // zero: it is shared by all projects
	Kind    string    // providertypes or automatortypes
	Plugin  string
	Type    string // of the resource, as the plug-in declares it
	Name    string
	Version int // from 1
}

// ClusterResource is a version of a file that plug-ins use.
type ClusterResource struct {
	ClusterResourceRef
	Size   int64
	Hash   string // SHA-256 of the content
	Live   bool   // plug-ins have it
	Slated bool   // they have it after the next sync
	Made   time.Time
	MadeBy string
}

// ClusterResourceStatus is whether plug-ins have a version, and will have it.
type ClusterResourceStatus string

// The statuses: staging and recalling a version says what the next sync does.
const (
	ResourceInactive ClusterResourceStatus = "inactive"
	ResourceStaged   ClusterResourceStatus = "staged" // active after the next sync
	ResourceActive   ClusterResourceStatus = "active"
	ResourceRecalled ClusterResourceStatus = "recalled" // inactive after the next sync
)

// Status is whether plug-ins have the version, and will have it.
func (r ClusterResource) Status() ClusterResourceStatus {
	switch {
	case r.Live && r.Slated:
		return ResourceActive
	case r.Live:
		return ResourceRecalled
	case r.Slated:
		return ResourceStaged
	}
	return ResourceInactive
}

// Flags returns what a status says of live and slated; ok is false if there is no such status.
func (s ClusterResourceStatus) Flags() (live, slated, ok bool) {
	switch s {
	case ResourceInactive:
		return false, false, true
	case ResourceStaged:
		return false, true, true
	case ResourceActive:
		return true, true, true
	case ResourceRecalled:
		return true, false, true
	}
	return false, false, false
}
