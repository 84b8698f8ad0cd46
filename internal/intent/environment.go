package intent

import "time"

// Project groups environments. Names are unique on a server.
type Project struct {
	ID   ProjectID
	Name string
}

// Source says where the intent of an environment is committed.
type Source struct {
	URL    string // any URL or path that git can fetch from; no credentials in it
	Branch string // empty: the remote's default branch
	Subdir string // folder of the project inside the repository; empty: its root
}

// Environment is the unit of tenancy: one Git source with its own versions,
// scheduler, executors and folder on disk.
type Environment struct {
	ID          EnvironmentID
	ProjectID   ProjectID
	ProjectName string // filled in by reads, ignored by writes
	Name        string // unique within the project
	Source      Source
	Description string
	Icon        string
	Halted      bool
	Settings    map[string]any // only those that were set; see Setting for the defaults
	// Protected names the settings that something else than a person decides,
	// and what: ProtectedByProject.
	Protected map[string]string
	Created   time.Time
	// HaltedBy and HaltedAt say who halted it and when; empty when nobody did.
	HaltedBy string
	HaltedAt *time.Time
	// Overrides are those that last. Filled in by reads, ignored by writes.
	Overrides []Override
}

// ProtectedByProject is what decides settings that project.yml names under
// environment_settings.
const ProtectedByProject = "project.yml"

// Revision is a resolved commit of a source.
type Revision struct {
	Commit  string // full hash
	Branch  string
	Author  string
	Email   string
	Subject string // first line of the message
	Time    time.Time
	Signer  Signer // who signed it, where the environment asks for signatures
}

// Short is the seven characters that pages and logs show.
func (r Revision) Short() string {
	if len(r.Commit) < 7 {
		return r.Commit
	}
	return r.Commit[:7]
}
