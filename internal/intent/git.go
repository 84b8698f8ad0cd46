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

// GitState is the state of an environment's repository.
type GitState struct {
	Kind    GitKind
	Commit  string // the commit that it is about; empty: none in particular
	Message string
	Advice  string
	// Reason is equal for failures that are the same to a person, however their messages
	// differ in detail. It is set while Kind is GitFailing.
	Reason  string
	Since   time.Time // when it became of this kind, about this commit
	Checked time.Time // when it was last found so
}

// GitKind is the kind of a GitState.
//
//	ok ◀──▶ failing        the repository cannot be fetched from
//	 ▲▼
//	unsigned, rewritten, protected, blocked: the newest commit is rejected
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

// Refused reports whether there is a commit that may not be deployed.
func (k GitKind) Refused() bool { return k != GitOK && k != GitFailing && k != "" }

// Refusal says why a commit may not be deployed. What is deployed does not change.
type Refusal struct {
	Kind    GitKind
	Commit  string
	Message string // what is wrong with it
	Advice  string // what a person can do
}

// Error returns the message and the advice.
func (r *Refusal) Error() string {
	if r.Advice == "" {
		return r.Message
	}
	return r.Message + "; " + r.Advice
}

// Acceptance records that a person accepted a commit that rewrites history.
type Acceptance struct {
	Commit string
	By     string
	Reason string
	At     time.Time
}

// MatchRef reports whether the full name of a branch or tag matches one of the
// patterns, in which * stands for any text and ? for any character. A pattern without
// refs/ matches branches.
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

// GitPolicy is what an environment requires of a commit before it is compiled.
type GitPolicy struct {
	Verify   string   // git_verify
	Signers  string   // git_allowed_signers
	Refs     []string // git_protected_refs
	Base     string   // the commit that is deployed; empty: none is
	Rewrites bool     // a commit that does not descend from Base is accepted
}

// Asks reports whether it requires anything.
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

// GitCommit is a commit whose compile was requested, and what became of it.
type GitCommit struct {
	Revision  Revision
	Compile   CompileID
	Trigger   Trigger
	Requested time.Time
	Completed *time.Time
	Success   *bool
	Version   int // 0: it has none
	Status    VersionStatus
	Released  *time.Time
	Held      bool
	// Superseded means that its compile was cancelled because there was a newer commit.
	Superseded bool
	// Cancelled means that a person cancelled its compile.
	Cancelled bool
}
