package apitest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// GitState gives what a test put there.
func (c *Control) GitState(_ context.Context, id uuid.UUID) (out *intent.GitState, err error) {
	err = c.see(id, func(e *Env) { out = e.Git })
	return out, err
}

// GitCommits lists what a test put there.
func (c *Control) GitCommits(_ context.Context, id uuid.UUID) (out []intent.GitCommit, err error) {
	err = c.see(id, func(e *Env) { out = e.Commits })
	return out, err
}

// AcceptCommit is a verb.
func (c *Control) AcceptCommit(_ context.Context, id uuid.UUID, commit string) (a intent.Acceptance, err error) {
	return a, c.change(id, "accept "+commit, func(e *Env) error {
		if e.Git == nil || e.Git.Kind != intent.GitRewritten || !strings.HasPrefix(e.Git.Commit, commit) {
			return fault.New("apitest", fault.Conflict, "no such commit waits to be accepted")
		}
		a = intent.Acceptance{Commit: e.Git.Commit, By: "somebody", At: time.Now().UTC()}
		e.Git = &intent.GitState{Kind: intent.GitOK, Commit: a.Commit, Since: a.At, Checked: a.At}
		return nil
	})
}

// git fills in a force-pushed branch over two good commits.
func (r *Rich) git(at time.Time) {
	commit := func(n int, subject string) intent.Revision {
		return intent.Revision{
			Commit: strings.Repeat(
				string("abcdef"[n]),
				40,
			), Branch: "main", Author: "<img src=x> Ada", Email: "ada@example.com",
			Subject: subject, Time: at.Add(-time.Duration(n) * time.Hour), Signer: intent.Signer{Name: "ada@example.com", Key: "SHA256:x"},
		}
	}
	yes, no, done := true, false, at.Add(-time.Minute)
	r.Production.Git = &intent.GitState{
		Kind: intent.GitRewritten, Commit: commit(0, "").Commit, Message: "aaaaaaa does not descend from bbbbbbb, which is deployed",
		Advice: "accept it, if that was meant", Since: done, Checked: done,
	}
	r.Production.Blocks = []intent.Block{
		{Commit: commit(3, "").Commit, By: "<b>ida</b>", Reason: "the shop was down", At: done},
	}
	r.Production.Commits = []intent.GitCommit{
		{Revision: commit(0, "Clean the history"), Compile: r.Failed, Requested: done, Completed: &done, Success: &no},
		{
			Revision:  commit(1, "<script>alert(1)</script>"),
			Compile:   r.Good,
			Requested: done,
			Completed: &done,
			Success:   &yes,
			Version:   7,
			Status:    intent.VersionActive,
		},
		{
			Revision:  commit(2, "Open the doors"),
			Compile:   r.Good,
			Requested: done,
			Completed: &done,
			Success:   &yes,
			Version:   6,
			Status:    intent.VersionRetired,
		},
	}
}

// RollBack is a verb.
func (c *Control) RollBack(_ context.Context, id uuid.UUID, to int) (v intent.Version, err error) {
	return v, c.change(id, fmt.Sprintf("rollback %d", to), func(e *Env) error {
		for _, one := range e.Vers {
			if one.Status != intent.VersionActive {
				continue
			}
			v = one.Version
			v.Provenance.RolledBack = &intent.RollBack{
				From:    v.Number,
				To:      to,
				Blocked: v.Provenance.Commit,
				By:      "ida",
				Reason:  "it fails",
				At:      time.Now().UTC(),
			}
			return nil
		}
		return fault.New("apitest", fault.Conflict, "nothing is deployed yet")
	})
}

// OpenRevert is a verb.
func (c *Control) OpenRevert(_ context.Context, id uuid.UUID, commit, _ string) (string, error) {
	return "https://git.example.com/infra/model/pulls/9", c.change(
		id,
		"revert "+commit,
		func(*Env) error { return nil },
	)
}

// BlockedCommits lists what a test put there.
func (c *Control) BlockedCommits(_ context.Context, id uuid.UUID) (out []intent.Block, err error) {
	err = c.see(id, func(e *Env) { out = e.Blocks })
	return out, err
}

// UnblockCommit is a verb.
func (c *Control) UnblockCommit(_ context.Context, id uuid.UUID, commit string) (b intent.Block, err error) {
	return b, c.change(id, "unblock "+commit, func(e *Env) error {
		for i := range e.Blocks {
			if e.Blocks[i].Commit == commit {
				b = e.Blocks[i]
				return nil
			}
		}
		return fault.New("apitest", fault.Conflict, "that commit is not blocked")
	})
}
