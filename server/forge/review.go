package forge

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// Review is what the policies of an environment say of a pull request, beside what it would change.
type Review struct {
	Signature SignatureState
	Refused   string              // why the commit could not be deployed as it is
	Errors    []string            // of the model, with file and line
	Gone      []intent.ResourceID // no longer managed
	Hold      *intent.Hold        // why it would be held
	Windows   []string            // what would wait for windows, in words
	Clusters  []string            // what would be done to clusters, a plan each in plain text
}

// SignatureState says what is known of the signature of a commit.
type SignatureState string

// States of a signature.
const (
	SignatureNotAsked SignatureState = "not asked"
	SignatureFine     SignatureState = "fine"
	SignatureRefused  SignatureState = "refused"
	SignatureUnknown  SignatureState = "unknown" // the commit was not fetched yet
)

// Review gathers what policies say of a pull request. changed lists the resources that its preview would create, change
// or purge; it is asked only if there are windows.
func (s *Service) Review(
	ctx context.Context, e intent.Environment, p intent.PullRequest, changed iter.Seq[intent.ResourceID],
) (r Review, err error) {
	if r.Signature, r.Refused, err = s.signature(ctx, e, p); err != nil {
		return r, err
	}
	if p.Preview == nil || p.PreviewOf != p.Head {
		return r, nil
	}
	switch p.PreviewState() {
	case intent.PreviewFailed:
		r.Errors, err = s.compileErrors(ctx, p.Preview.Compile)
		return r, err
	case intent.PreviewDone:
		return r, s.addPolicies(ctx, e, *p.Preview, changed, &r)
	}
	return r, nil
}

// addPolicies adds what would stop or delay the version of a preview.
func (s *Service) addPolicies(
	ctx context.Context, e intent.Environment, run intent.DryRun, changed iter.Seq[intent.ResourceID], r *Review,
) (err error) {
	if r.Gone, err = NoLongerManaged(ctx, s.cfg.Store, run); err != nil {
		return err
	}
	if r.Hold, err = s.cfg.Store.JudgeVersion(ctx, e.ID, run.Version, s.cfg.Now()); err != nil {
		return err
	}
	r.Windows = s.waits(e, changed)
	if s.cfg.Clusters != nil {
		r.Clusters, err = s.cfg.Clusters(ctx, e, run.Version)
	}
	return err
}

// signature says whether the head of a pull request would be refused for missing signatures, and why. A preview is made
// all the same: whose code may run is another question. Neither the branch nor its history is judged: the merge is
// still to come.
func (s *Service) signature(
	ctx context.Context, e intent.Environment, p intent.PullRequest,
) (SignatureState, string, error) {
	asked := e.GitPolicy()
	if p.State != intent.PullIsOpen || p.Head == "" || asked.Verify != "tip" && asked.Verify != "all" {
		return SignatureNotAsked, "", nil
	}
	active, err := s.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return SignatureUnknown, "", err
	}
	if active != nil {
		asked.Base = active.Provenance.Commit
	}
	asked.Rewrites, asked.Refs = true, nil
	_, err = s.cfg.Git.Verify(ctx, source.Plain(e), intent.Revision{Commit: p.Head}, asked)
	if err == nil {
		return SignatureFine, "", nil
	}
	refusal := (*intent.Refusal)(nil)
	if !errors.As(err, &refusal) {
		return SignatureUnknown, "", nil // it was not fetched yet
	}
	text := refusal.Message + "; " + refusal.Advice
	if asked.Verify == "tip" {
		text += " (or merge it with a commit that is signed)"
	}
	return SignatureRefused, text, nil
}

// waits says how many of the resources that would change wait for windows and freezes.
func (s *Service) waits(e intent.Environment, changed iter.Seq[intent.ResourceID]) (out []string) {
	windows, err := e.Windows()
	if err != nil || len(windows) == 0 {
		return nil
	}
	now := s.cfg.Now()
	counts, order := map[string]int{}, []string{}
	for id := range changed {
		gate := windows.Gate(id, now)
		if !gate.Held() || intent.Overridden(e.Overrides, id.Agent, now) != nil {
			continue
		}
		if counts[gate.String()]++; counts[gate.String()] == 1 {
			order = append(order, gate.String())
		}
	}
	for _, why := range order {
		out = append(out, fmt.Sprintf("%d of its changes: %s", counts[why], why))
	}
	return out
}

// changedOf lists the resources that differences create, change or purge.
func changedOf(diffs []intent.ResourceDiff) iter.Seq[intent.ResourceID] {
	return func(yield func(intent.ResourceID) bool) {
		for _, d := range diffs {
			if d.Kind.Touches() && !yield(d.ID) {
				return
			}
		}
	}
}

// compileErrors returns the errors of a compile as a compiler prints them; none
// when there is no report of it any more.
func (s *Service) compileErrors(ctx context.Context, id *intent.CompileID) ([]string, error) {
	if id == nil {
		return nil, nil
	}
	compile, _, err := s.cfg.Store.Compile(ctx, *id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return modelErrors(compile.Diagnostics), err
}
