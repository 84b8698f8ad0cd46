package intent

import (
	"strings"
	"time"
)

// Signer is who signed a commit or tag, as an environment's allowed signers name them.
type Signer struct {
	Name string // a principal of an SSH key, or the identity of an OpenPGP key
	Key  string // fingerprint
}

// GitState tells how it goes between an environment and its repository.
type GitState struct {
	Kind    GitKind
	Commit  string // that it is about; empty: none in particular
	Message string
	Advice  string
	Since   time.Time // it has been of this kind, about this commit, since then
	Checked time.Time // when it was last found so
}

// GitKind is the kind of a GitState.
//
//	ok ◀──▶ failing        the repository cannot be fetched from
//	 ▲▼
//	unsigned, rewritten, protected, blocked: the newest commit is refused
type GitKind string

// Kinds of GitState.
const (
	GitOK        GitKind = "ok"
	GitFailing   GitKind = "failing"   // the repository, or the branch in it, cannot be read
	GitUnsigned  GitKind = "unsigned"  // not signed by an allowed signer
	GitRewritten GitKind = "rewritten" // does not descend from what is deployed
	GitProtected GitKind = "protected" // not of a branch or tag that may be deployed
	GitBlocked   GitKind = "blocked"   // a person took this commit back
)

// Refused tells that a commit was found and may not be deployed.
func (k GitKind) Refused() bool { return k != GitOK && k != GitFailing && k != "" }

// Refusal is why a commit may not be deployed. What is deployed stays.
type Refusal struct {
	Kind    GitKind
	Commit  string
	Message string // what is wrong with it
	Advice  string // what a person can do
}

// Error gives the message and the advice.
func (r *Refusal) Error() string {
	if r.Advice == "" {
		return r.Message
	}
	return r.Message + "; " + r.Advice
}

// Acceptance says that a person let a commit through that rewrites history.
type Acceptance struct {
	Commit string
	By     string
	Reason string
	At     time.Time
}

// MatchRef holds the full name of a branch or tag against patterns: * stands for
// any text, ? for any character. A pattern without refs/ is about branches.
func MatchRef(patterns []string, full string) bool {
	for _, p := range patterns {
		if !strings.HasPrefix(p, "refs/") {
			p = "refs/heads/" + p
		}
		if matchPattern(p, full) {
			return true
		}
	}
	return false
}

// GitPolicy is what an environment asks of a commit before it is compiled.
type GitPolicy struct {
	Verify   string   // git_verify
	Signers  string   // git_allowed_signers
	Refs     []string // git_protected_refs
	Base     string   // the commit that is deployed; empty: none is
	Rewrites bool     // one that does not descend from Base is let through
}

// Asks tells whether there is anything to hold a commit against.
func (p GitPolicy) Asks() bool {
	return p.Verify != "off" || len(p.Refs) > 0 || p.Base != "" && !p.Rewrites
}

// GitPolicy reads the settings.
func (e Environment) GitPolicy() GitPolicy {
	p := GitPolicy{
		Verify: e.Text(
			"git_verify"), Signers: e.Text("git_allowed_signers"), Rewrites: e.Text("git_rewrites") == "follow",
	}
	for _, pattern := range splitPatterns(e.Text("git_protected_refs")) {
		if pattern = strings.TrimSpace(pattern); pattern != "" {
			p.Refs = append(p.Refs, pattern)
		}
	}
	return p
}

// GitCommit is one commit that was compiled, or was to be, and what became of it.
type GitCommit struct {
	Revision  Revision
	Compile   CompileID
	Trigger   Trigger
	Requested time.Time
	Completed *time.Time
	Success   *bool
	Version   int // 0: none was made
	Status    VersionStatus
	Released  *time.Time
	Held      bool
	// Superseded: its compile was cancelled, for a newer commit was there.
	Superseded bool
}
