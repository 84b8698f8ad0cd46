package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge/weblink"
	"ordain.dev/ordain/server/store"
)

// gitPage shows the state of an environment's repository, and what became of the newest commits.
type gitPage struct {
	frame
	Repository, Branch, Subdir string
	RepositoryURL              string // at its forge, if that is known
	State                      *gitStateRow
	Standing                   standingView
	Commits                    []gitCommitGroup
	Blocks                     []blockRow
	CanRollBack                bool // another version was deployed before
	Follow                     *followView
}

// blockRow is a commit that a person rolled back.
type blockRow struct {
	Commit, Full, By, Reason string
	At                       time.Time
}

type gitStateRow struct {
	State                   state
	Commit, Message, Advice string
	Since                   time.Time
	// Full is the commit that a person can accept; empty when there is none to accept.
	Full string
}

type gitCommitRow struct {
	State                             state
	Commit, Full, Subject             string
	Hash                              commitView
	Author, Signer, SignerKey, RunURL string
	Version                           int
	VersionURL                        string
	When                              time.Time
}

var gitStates = map[intent.GitKind]state{
	intent.GitOK:        {"intended", "in sync"},
	intent.GitFailing:   {"failed", "cannot be read"},
	intent.GitUnsigned:  {"differs", "refused: not signed"},
	intent.GitRewritten: {"differs", "refused: history rewritten"},
	intent.GitProtected: {"differs", "refused: not of a protected ref"},
	intent.GitBlocked:   {"differs", "blocked"},
}

// shownCommits is how many of the newest commits are listed, and readRuns how many runs are looked at for them.
const shownCommits, readRuns = 100, 300

func (c *console) git(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Git", "git", crumb{Text: "Git"})
	if err != nil {
		return view{}, err
	}
	p := gitPage{frame: f, Repository: e.Source.URL, Branch: e.Source.Branch, Subdir: e.Source.Subdir}
	s, err := c.store.GitState(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	if s != nil {
		p.State = &gitStateRow{
			State: gitStates[s.Kind], Commit: short(s.Commit), Message: s.Message, Advice: s.Advice, Since: s.Since,
		}
		if s.Kind == intent.GitRewritten {
			p.State.Full = s.Commit
		}
	}
	now, err := c.control.Standing(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	p.Standing = c.standingOf(e.ID, now)
	p.Standing.dropGit()
	if s != nil && s.Kind == intent.GitBlocked && now.Find(intent.StandsRolledBack, intent.StandsBlocked) != nil {
		p.State.Message, p.State.Advice = "", "" // the banner says it
	}
	if p.State != nil && s.Kind == intent.GitOK && now.Kind() != intent.StandsSame {
		p.State.State = state{"differs", "fetched"}
	}
	site := weblink.OfEnvironment(e)
	p.RepositoryURL = site.Home()
	commits, err := c.store.GitCommits(r.Context(), e.ID, readRuns)
	if err != nil {
		return view{}, err
	}
	var runs []gitCommitRow
	for _, one := range commits {
		row := gitCommitRowOf(e.ID, one)
		row.Hash = commitOf(site, row.Full)
		if s != nil && s.Kind.Refused() && s.Commit == one.Revision.Commit && one.Version == 0 {
			row.State = gitStates[s.Kind]
		}
		p.CanRollBack = p.CanRollBack || one.Status == intent.VersionRetired
		runs = append(runs, row)
	}
	markRolledBack(runs, now, e.ID)
	p.Commits = groupCommits(runs)
	blocks, err := c.store.GitBlocks(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	for _, b := range blocks {
		p.Blocks = append(p.Blocks, blockRow{
			Commit: short(b.Commit), Full: b.Commit, By: b.By, Reason: b.Reason, At: b.At,
		})
	}
	following, err := c.control.Following(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	v := view{template: "git"}
	if p.Follow = followViewOf(f, e, following); p.Follow != nil {
		v.fragments = []fragment{{"promotion", "promotion", p.Follow.Waiting}}
	}
	v.data = p
	return v, nil
}

func gitCommitRowOf(env intent.EnvironmentID, c intent.GitCommit) gitCommitRow {
	row := gitCommitRow{
		Commit: c.Revision.Short(), Full: c.Revision.Commit, Subject: c.Revision.Subject, Author: c.Revision.Author,
		Signer: c.Revision.Signer.Name, SignerKey: c.Revision.Signer.Key, RunURL: runURL(env, c.Compile),
		When: c.Requested, Version: c.Version,
	}
	if c.Version > 0 {
		row.VersionURL = versionURL(env, c.Version)
	}
	switch {
	case c.Completed == nil:
		row.State = state{"deploying", "compiling"}
	case c.Superseded:
		row.State = superseded
	case c.Cancelled:
		row.State = cancelled
	case c.Success != nil && !*c.Success:
		row.State = failed
	case c.Held:
		row.State = state{"waiting", "held"}
	case c.Status == intent.VersionActive:
		row.State = active
	case c.Status == intent.VersionRetired:
		row.State = retired
	case c.Version > 0:
		row.State = state{"none", "compiled"}
	default:
		row.State = state{"none", "nothing new"}
	}
	return row
}

// doAccept accepts a commit that rewrites history.
func (c *console) doAccept(r *http.Request, e intent.Environment) (string, error) {
	_, err := c.control.AcceptCommit(asPerson(r), e.ID, strings.TrimSpace(r.PostFormValue("commit")))
	return back(r, envURL(e.ID)+"/git", "accepted"), err
}

// asPerson returns the context of what a form does, with the person and the reason from its fields.
func asPerson(r *http.Request) context.Context {
	get := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	return control.As(r.Context(), cmp.Or(get("by"), "the console"), get("reason"))
}

// asConsole returns the context of what a form does that asks for no name.
func asConsole(r *http.Request) context.Context { return control.As(r.Context(), "the console", "") }

// doUnblock unblocks a commit that was rolled back.
func (c *console) doUnblock(r *http.Request, e intent.Environment) (string, error) {
	_, err := c.control.UnblockCommit(asPerson(r), e.ID, strings.TrimSpace(r.PostFormValue("commit")))
	return back(r, envURL(e.ID)+"/git", "unblocked"), err
}

// doRollBack deploys an earlier version again and leads to the version that is deployed then.
func (c *console) doRollBack(r *http.Request, e intent.Environment) (string, error) {
	to := 0
	if text := r.PostFormValue("version"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return "", fault.New("console.doRollBack", fault.NotFound, "there is no version "+text)
		}
		to = n
	}
	v, err := c.control.RollBack(asPerson(r), e.ID, to)
	if held := (*store.HeldError)(nil); errors.As(err, &held) {
		return versionURL(e.ID, held.Version) + "?done=rollheld", nil
	}
	return versionURL(e.ID, v.Number) + "?done=rolledback", err
}
