package intent

// FolderOrigin says which folder of a person a version comes from.
type FolderOrigin struct {
	Path string `json:"path"`
	User string `json:"user"`
	Host string `json:"host"`
	// Commit is the commit that the folder has checked out; empty if it is not in a Git repository.
	Commit string `json:"commit,omitempty"`
	// Dirty is whether the folder differs from Commit; nil if that is unknown.
	Dirty *bool `json:"dirty,omitempty"`
}
