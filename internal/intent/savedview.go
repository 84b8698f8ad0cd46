package intent

// ViewList is a list whose filters can be saved.
type ViewList string

// The lists whose filters can be saved.
const (
	ViewsOfResources   ViewList = ""        // of an environment
	ViewsOfVersions    ViewList = "version" // the resources of any version
	ViewsOfComparisons ViewList = "compare" // the differences between any two versions
)

// SavedView is a named filter of a list. A name stands for one filter, whatever its list is.
type SavedView struct {
	Name   string
	List   ViewList
	Filter string // as in the address of the list, without the question mark
}

// Limits of saved views.
const (
	MaxSavedViews    = 50 // of a person in an environment
	MaxSavedViewName = 60
	MaxSavedFilter   = 2000
)
