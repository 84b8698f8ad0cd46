package gitsync

// Report describes what a fetch, a checkout or a merge did, in a form that can
// be shown to people. It never holds a credential.
type Report struct {
	Command string // the git command that a person would have typed
	Output  string // about what git would have printed; empty, or ended by a line break

	Cloned    bool // fetch: there was no mirror before
	Rewritten bool // fetch: the branch was force-pushed, and no longer contains the commit it pointed to
	Rebuilt   bool // fetch, checkout: the mirror was damaged, and was made again

	// Counts of a checkout.
	Written   int // files
	Removed   int // files and whole folders
	Unchanged int // files
}

// endLine ends a text with a line break, unless it is empty.
func endLine(text string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return text
	}
	return text + "\n"
}
