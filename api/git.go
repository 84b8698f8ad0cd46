package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// shownCommits is how many of the newest commits are listed.
const shownCommits = 100

// gitCalls are about commits, and about taking them back. Inmanta has no such calls.
func (s *server) gitCalls(c *calls) {
	const path = "/api/v2/git"
	v2(c, http.MethodGet, path, "Show how the environment gets on with its repository.", access.SeeGit, s.getGit)
	v2(c, http.MethodGet, path+"/commits", "List the newest commits, and what became of them.",
		access.SeeGit, s.listCommits)
	v2(c, http.MethodPost, path+"/accept", "Accept a commit that rewrites history.",
		access.AcceptCommit, s.acceptCommit)
	v2(c, http.MethodGet, path+"/blocks", "List the commits that were taken back.", access.SeeGit, s.listBlocks)
	v2(c, http.MethodPost, path+"/unblock", "Allow a commit again that was taken back.",
		access.UnblockCommit, s.unblockCommit)
	v2(c, http.MethodPost, "/api/v2/rollback",
		"Deploy the content of an earlier version again, as a new version, and block the commit that is left. "+
			"Without a version it is the last one before that was deployed. It answers 409 when there is none, and "+
			"when the rollback takes away so much that its version is held. With revert, the forge is asked for a "+
			"pull request that takes the commit back.", access.RollBack, s.rollBack)
}

// gitSource is the repository of an environment.
type gitSource struct {
	Repository string    `json:"repository"`
	Branch     string    `json:"branch"`
	Subdir     string    `json:"subdir"`
	State      *gitState `json:"state"`
}

type gitState struct {
	Kind    intent.GitKind `json:"kind"`
	Commit  *string        `json:"commit"`
	Message string         `json:"message"`
	Advice  string         `json:"advice"`
	Since   timestamp      `json:"since"`
	Checked timestamp      `json:"checked"`
	Refused bool           `json:"refused"`
}

// gitCommit is a commit that was compiled, or was to be, and what became of it.
type gitCommit struct {
	Commit        string                `json:"commit"`
	Branch        string                `json:"branch"`
	Author        string                `json:"author"`
	Email         string                `json:"email"`
	Subject       string                `json:"subject"`
	Time          timestamp             `json:"time"`
	Signer        *string               `json:"signer"`
	SignerKey     *string               `json:"signer_key"`
	Compile       uuid.UUID             `json:"compile"`
	Trigger       string                `json:"trigger"`
	Requested     timestamp             `json:"requested"`
	Success       *bool                 `json:"success"`
	Version       *int                  `json:"version"`
	VersionStatus *intent.VersionStatus `json:"version_status"`
	Held          bool                  `json:"held"`
}

// commitDecision is what somebody decided about a commit.
type commitDecision struct {
	Commit string `json:"commit"`
	decision
}

// rollback is the version that a rollback made.
type rollback struct {
	Version       int                  `json:"version"`
	Status        intent.VersionStatus `json:"status"`
	Commit        *string              `json:"commit"`
	Revert        *string              `json:"revert"`
	RevertProblem *string              `json:"revert_problem"`
	RolledBack    *rolledBack          `json:"rolled_back,omitempty"`
}

type rolledBack struct {
	From    int     `json:"from"`
	To      int     `json:"to"`
	Blocked *string `json:"blocked"`
	decision
}

type onCommit struct {
	inEnvironment
	byPerson
	Commit string `arg:"commit,required"`
}

type newRollback struct {
	inEnvironment
	byPerson
	Version *int `arg:"version"`
	Revert  bool `arg:"revert"`
}

func (s *server) getGit(ctx context.Context, a inEnvironment) (gitSource, error) {
	e, err := s.environment(ctx, a.Env)
	if err != nil {
		return gitSource{}, err
	}
	out := gitSource{Repository: e.Source.URL, Branch: e.Source.Branch, Subdir: e.Source.Subdir}
	state, err := s.store.GitState(ctx, a.Env)
	if state != nil {
		out.State = &gitState{
			Kind: state.Kind, Commit: orNull(state.Commit), Message: state.Message, Advice: state.Advice,
			Since: stamp(state.Since), Checked: stamp(state.Checked), Refused: state.Kind.Refused(),
		}
	}
	return out, err
}

func (s *server) listCommits(ctx context.Context, a inEnvironment) ([]gitCommit, error) {
	list, err := s.store.GitCommits(ctx, a.Env, shownCommits)
	return listed(list, gitCommitOf), err
}

func (s *server) acceptCommit(ctx context.Context, a onCommit) (commitDecision, error) {
	x, err := s.control.AcceptCommit(a.as(ctx), a.Env, a.Commit)
	return commitDecision{x.Commit, decision{By: x.By, Reason: x.Reason, At: stamp(x.At)}}, err
}

func (s *server) listBlocks(ctx context.Context, a inEnvironment) ([]commitDecision, error) {
	list, err := s.store.GitBlocks(ctx, a.Env)
	return listed(list, blockOf), err
}

func (s *server) unblockCommit(ctx context.Context, a onCommit) (commitDecision, error) {
	b, err := s.control.UnblockCommit(a.as(ctx), a.Env, a.Commit)
	return blockOf(b), err
}

func (s *server) rollBack(ctx context.Context, a newRollback) (rollback, error) {
	to := 0
	if a.Version != nil {
		if to = *a.Version; to < 1 {
			to = -1
		}
	}
	v, err := s.control.RollBack(a.as(ctx), a.Env, to)
	if err != nil {
		return rollback{}, err
	}
	out := rollback{Version: v.Number, Status: v.Status, Commit: orNull(v.Provenance.Commit)}
	b := v.Provenance.RolledBack
	if b == nil {
		return out, nil
	}
	out.RolledBack = &rolledBack{
		From: b.From, To: b.To, Blocked: orNull(b.Blocked),
		decision: decision{By: b.By, Reason: b.Reason, At: stamp(b.At)},
	}
	if a.Revert && b.Blocked != "" {
		if page, err := s.control.OpenRevert(ctx, a.Env, b.Blocked, b.Reason); err != nil {
			out.RevertProblem = new(err.Error())
		} else {
			out.Revert = &page
		}
	}
	return out, nil
}

func blockOf(b intent.Block) commitDecision {
	return commitDecision{b.Commit, decision{By: b.By, Reason: b.Reason, At: stamp(b.At)}}
}

func gitCommitOf(c intent.GitCommit) gitCommit {
	out := gitCommit{
		Commit: c.Revision.Commit, Branch: c.Revision.Branch, Author: c.Revision.Author, Email: c.Revision.Email,
		Subject: c.Revision.Subject, Time: stamp(c.Revision.Time), Signer: orNull(c.Revision.Signer.Name),
		SignerKey: orNull(c.Revision.Signer.Key), Compile: c.Compile, Trigger: c.Trigger.Type,
		Requested: stamp(c.Requested), Success: c.Success, Held: c.Held,
	}
	if c.Version > 0 {
		out.Version, out.VersionStatus = &c.Version, &c.Status
	}
	return out
}
