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
	ProjectName string // set when it is read, ignored when it is written
	Name        string // unique within the project
	Source      Source
	Description string
	Icon        string
	Tags        []string // roles can be bound to all environments with a tag; sorted
	Halted      bool
	Settings    map[string]any // only those that were set; see Setting for the defaults
	// Protected names the settings that people cannot change, and what decides them:
	// ProtectedByProject.
	Protected map[string]string
	Created   time.Time
	// Number identifies the environment among all that its server ever had. The store gives it.
	Number int
	// HaltedBy and HaltedAt say who halted it and when; empty if it is not halted.
	HaltedBy string
	HaltedAt *time.Time
	// HaltedReason says why it was halted. It is set when the environment is read, and ignored when it is written.
	HaltedReason string
	// Overrides holds those in force. It is set when the environment is read, and
	// ignored when it is written.
	Overrides []Override
}

// ProtectedByProject marks settings that project.yml decides under environment_settings.
const ProtectedByProject = "project.yml"

// Revision is a resolved commit of a source.
type Revision struct {
	Commit  string // full hash
	Branch  string
	Author  string
	Email   string
	Subject string // first line of the message
	Time    time.Time
	Signer  Signer // who signed it, if the environment requires signatures
}

// Short returns the seven characters that pages and logs show.
func (r Revision) Short() string {
	if len(r.Commit) < 7 {
		return r.Commit
	}
	return r.Commit[:7]
}
