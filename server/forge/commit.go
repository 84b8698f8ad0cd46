package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/client"
)

// Write is a change of files that a person makes in Ordain.
type Write struct {
	// Topic is what is changed, such as cluster-web. It becomes a part of the name of a branch.
	Topic string
	// Base is the commit that the person saw, as a full hash; empty for none. Nothing is written over changes that
	// others made to the same files since.
	Base  string
	Files []gitsync.FileChange // their paths begin at the top of the repository, and not at the environment's folder
	// Author is the person who asked.
	Author  gitsync.Identity
	Message string // of the commit
	// Title and Body are those of a pull request, if there is one. Empty: the first line and the rest of Message.
	Title string
	Body  string
}

// Written says where a Write is now.
type Written struct {
	Branch string // that has it: the one of the environment, or the one of the pull request
	Commit string // on the environment's branch; empty while there is only a pull request
	// PullRequest is the page of the pull request; empty when the change is committed.
	PullRequest string
}

// Commit writes files into the repository of an environment, in the name of the person who asked; the committer is
// Ordain. It commits on the environment's branch, or opens a pull request at the forge: where the setting
// cluster_changes says so, where the forge or the repository protects the branch, and where the environment takes only
// signed commits, because Ordain signs none. If the branch has all contents already, it returns the tip.
//
// The faults are those of gitsync.Write. When a pull request is needed and there is no forge to open it at, the fault
// is a Conflict that says what to do, and wraps gitsync.ErrProtected if the branch is protected.
func (s *Service) Commit(ctx context.Context, e intent.Environment, w Write) (Written, error) {
	src, err := s.cfg.Sources.Of(ctx, e)
	if err != nil {
		return Written{}, err
	}
	commit := gitsync.Write{Base: w.Base, Files: w.Files, Author: w.Author, Message: w.Message}
	plan, err := s.cfg.Git.Plan(ctx, src, commit)
	if err != nil {
		return Written{}, err
	}
	if len(plan.Changes) == 0 {
		return Written{Branch: plan.Branch, Commit: plan.Tip}, nil
	}
	f, noForge := s.cfg.Forges.Open(ctx, e)
	why := s.whyByPullRequest(ctx, e, f, plan.Branch)
	if why == nil {
		commit.Branch = plan.Branch
		hash, err := s.cfg.Git.Write(ctx, src, commit)
		switch {
		case err == nil:
			return Written{Branch: plan.Branch, Commit: hash}, nil
		case !errors.Is(err, gitsync.ErrProtected):
			return Written{}, adviseProposals(err, noForge)
		}
		why = err
	}
	if noForge != nil {
		return Written{}, needsForge(e, why, noForge)
	}
	p := proposalOf(e, w, plan)
	page, err := f.Propose(ctx, p)
	return Written{Branch: p.Branch, PullRequest: page}, err
}

// whyByPullRequest returns why a change cannot be a commit on the branch; nil when it can, as far as we know. f is nil
// when there is no forge.
func (s *Service) whyByPullRequest(ctx context.Context, e intent.Environment, f client.Forge, branch string) error {
	switch verify := e.Text("git_verify"); {
	case e.Text(intent.ClusterChanges) == intent.ByPullRequest:
		return errors.New("the setting cluster_changes asks for pull requests")
	case verify == "tip" || verify == "all":
		return errors.New("the setting git_verify asks for signatures, and Ordain signs no commits")
	case f == nil:
		return nil
	}
	protected, err := f.Protected(ctx, branch)
	if err != nil { // the repository itself has the last word
		s.cfg.Logger.Info("cannot ask the forge whether a branch is protected", "environment", e.ID, "branch", branch,
			"error", err)
	}
	if protected {
		return fmt.Errorf("%w by the forge", gitsync.ErrProtected)
	}
	return nil
}

// needsForge returns the fault for a change that needs a pull request, where none can be opened.
func needsForge(e intent.Environment, why, noForge error) error {
	const op = "forge.Commit"
	if !errors.Is(noForge, ErrNoForge) {
		return noForge
	}
	var told *fault.Error
	if errors.As(why, &told) {
		copied := *told // without its advice, which ours replaces
		copied.Advice = ""
		why = &copied
	}
	return fault.Wrap(op, fault.Conflict, why).
		Say("the change needs a pull request, and the environment " + e.Name + " has no forge, or no token for it").
		Hint("set the secret forge-token (and the settings forge and forge_api, if the repository's URL does not " +
			"name the forge), let the environment's Git credentials commit on the branch, or commit by hand")
}

// adviseProposals adds to the fault of credentials that may only read that pull requests are a way around.
func adviseProposals(err, noForge error) error {
	var f *fault.Error
	if noForge != nil || !errors.As(err, &f) || f.Kind != fault.Forbidden {
		return err
	}
	advised := *f
	advised.Advice += "; or set cluster_changes to pull_request, which needs the forge's token only"
	return &advised
}

// Bounds on the texts of a proposal.
const (
	maxTopic = 80
	maxTitle = 200
	maxBody  = 16 << 10
)

// proposalOf returns the pull request for a change. Its branch has a name that depends on the change and on the commit
// that it was made for: the same change asked for twice is one pull request.
func proposalOf(e intent.Environment, w Write, plan gitsync.Plan) client.Proposal {
	subject, rest, _ := strings.Cut(strings.TrimSpace(w.Message), "\n")
	title, body := strings.TrimSpace(w.Title), strings.TrimSpace(w.Body)
	if title == "" {
		title = subject
	}
	if body == "" {
		body = strings.TrimSpace(rest)
	}
	asked := fmt.Sprintf("%s asked for this in Ordain, in the environment `%s`.", client.Code(w.Author.Name),
		client.Code(e.Name))
	title = shorten(strings.Join(strings.Fields(client.Tame(title)), " "), maxTitle)
	return client.Proposal{
		What: "the change", Author: w.Author, Base: plan.Branch, Tip: plan.Tip, Changes: plan.Changes,
		Branch: "ordain/" + slug(w.Topic) + "-" + fingerprint(plan),
		Title:  title, Body: strings.TrimSpace(shorten(client.Tame(body), maxBody) + "\n\n" + asked),
	}
}

// fingerprint returns some digits that another change would not have.
func fingerprint(plan gitsync.Plan) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", plan.Branch, plan.Tip)
	for _, c := range plan.Changes {
		fmt.Fprintf(sum, " %q %t %q", c.Path, c.Gone, c.Content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:10]
}

// slug returns a text as a part of the name of a branch: small letters, digits and single dashes.
func slug(text string) string {
	var out strings.Builder
	dash := false
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			if dash && out.Len() > 0 {
				out.WriteByte('-')
			}
			dash = false
			out.WriteRune(r)
		default:
			dash = true
		}
		if out.Len() >= maxTopic {
			break
		}
	}
	if out.Len() == 0 {
		return "change"
	}
	return out.String()
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
