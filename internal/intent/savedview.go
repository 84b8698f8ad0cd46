package intent

// SavedView is a named filter of the list of resources.
type SavedView struct {
	Name   string
	Filter string // as in the address of the list, without the question mark
}

// Limits of saved views.
const (
	MaxSavedViews    = 50 // of a person in an environment
	MaxSavedViewName = 60
	MaxSavedFilter   = 2000
)
