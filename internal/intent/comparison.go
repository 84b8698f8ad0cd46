package intent

// Compared names what is compared: two versions of an environment or, if DryRun is set, the intent with what the dry
// run found.
type Compared struct {
	Environment EnvironmentID
	From, To    int
	DryRun      ActionID
}

// DiffEdit is a difference as it is needed to list it, and to tell whether others are equal. Old and New stand for the
// contents of the resource in the two versions; 0: it is not in that one. Before and After are JSON objects with the
// attributes of a modified resource. They are nil if there is too much text in them, or if what it requires differs.
type DiffEdit struct {
	ID            string
	Old, New      int64
	Kind          DiffKind
	Before, After []byte
	// Changes are those of a dry run: a JSON object of AttributeChange.
	Changes []byte
}
