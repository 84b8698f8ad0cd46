package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
	"ordain.dev/ordain/server/store"
)

// Report gathers what is known of the preview of a pull request.
func (s *Service) Report(ctx context.Context, e intent.Environment, p intent.PullRequest) (Report, error) {
	r := Report{
		Environment: e.Name, Pull: p, Command: ApproveCommand(e, p),
		Page: s.page(fmt.Sprintf("/e/%s/pulls/%d", e.ID, p.Number)),
	}
	var err error
	if r.Refused, err = s.refusal(ctx, e, p); err != nil {
		return r, err
	}
	if p.Preview == nil || p.PreviewOf != p.Head {
		return r, nil
	}
	r.Version = p.Preview.Base
	switch p.PreviewState() {
	case intent.PreviewFailed:
		r.Errors, err = s.compileErrors(ctx, p.Preview.Compile)
		return r, err
	case intent.PreviewDone:
		return r, s.addResult(ctx, e, p.Preview.ID, &r)
	}
	return r, nil
}

// addResult adds what the dry run of a preview found.
func (s *Service) addResult(ctx context.Context, e intent.Environment, id intent.ActionID, r *Report) error {
	run, diffs, err := s.cfg.Store.DryRun(ctx, e.ID, id)
	if err != nil {
		return err
	}
	r.Diffs = diffs
	if r.Gone, err = NoLongerManaged(ctx, s.cfg.Store, run); err != nil {
		return err
	}
	if r.Hold, err = s.cfg.Store.JudgeVersion(ctx, e.ID, run.Version, s.cfg.Now()); err != nil {
		return err
	}
	r.Windows = s.waits(e, diffs)
	r.Decided = s.decided(ctx, e.ID, run.Version, diffs)
	if s.cfg.Clusters != nil {
		r.Clusters, err = s.cfg.Clusters(ctx, e, run.Version)
	}
	return err
}

// NoLongerManaged lists the resources that the version which was active when a
// dry run was asked for has, and the version of the dry run has not: releasing
// that one would leave them alone, as they are.
func NoLongerManaged(ctx context.Context, records *store.Store, run intent.DryRun) ([]intent.ResourceID, error) {
	if run.Base == 0 || run.Version == 0 || run.Base == run.Version || run.ResourceFilter != nil {
		return nil, nil
	}
	gone, err := records.GoneResources(ctx, run.Environment, run.Base, run.Version)
	return slices.DeleteFunc(gone, func(id intent.ResourceID) bool { return !run.Filter.Match(id) }), err
}

// refusal says why the head of a pull request would be refused for missing
// signatures; empty when it would not. A preview is made all the same: whose code
// may run is another question. Neither the branch nor its history is judged: the
// merge is still to come.
func (s *Service) refusal(ctx context.Context, e intent.Environment, p intent.PullRequest) (string, error) {
	asked := e.GitPolicy()
	if p.State != intent.PullIsOpen || p.Head == "" || asked.Verify != "tip" && asked.Verify != "all" {
		return "", nil
	}
	active, err := s.cfg.Store.ActiveVersion(ctx, e.ID)
	if err != nil {
		return "", err
	}
	if active != nil {
		asked.Base = active.Provenance.Commit
	}
	asked.Rewrites, asked.Refs = true, nil
	_, err = s.cfg.Git.Verify(ctx, source.Plain(e), intent.Revision{Commit: p.Head}, asked)
	refusal := (*intent.Refusal)(nil)
	if !errors.As(err, &refusal) {
		return "", nil // it is fine, or was not fetched yet
	}
	text := refusal.Message + "; " + refusal.Advice
	if asked.Verify == "tip" {
		text += " (or merge it with a commit that is signed)"
	}
	return text, nil
}

// waits says how many changes would wait for windows and freezes.
func (s *Service) waits(e intent.Environment, diffs []intent.ResourceDiff) (out []string) {
	windows, err := e.Windows()
	if err != nil || len(windows) == 0 {
		return nil
	}
	now := s.cfg.Now()
	counts, order := map[string]int{}, []string{}
	for _, d := range diffs {
		if d.Kind != intent.DiffAdded && d.Kind != intent.DiffModified && d.Kind != intent.DiffDeleted {
			continue
		}
		gate := windows.Gate(d.ID, now)
		if !gate.Held() || intent.Overridden(e.Overrides, d.ID.Agent, now) != nil {
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

// maxErrors bounds how many errors of a model a comment quotes.
const maxErrors = 20

// modelErrors formats diagnostics as a compiler prints them: file:line: what.
func modelErrors(raw json.RawMessage) (out []string) {
	var all []struct {
		Code     string
		Message  string
		Hint     string
		Location *struct {
			File string
			Line int
		}
		Source string
	}
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for i, d := range all {
		if i == maxErrors {
			return append(out, fmt.Sprintf("… and %d more", len(all)-maxErrors))
		}
		text := d.Message
		if d.Code != "" {
			text = d.Code + ": " + text
		}
		if d.Location != nil {
			text = fmt.Sprintf("%s:%d: %s", d.Location.File, d.Location.Line, text)
		}
		if d.Source != "" {
			text += "\n    " + strings.TrimSpace(d.Source)
		}
		if d.Hint != "" {
			text += "\n    hint: " + d.Hint
		}
		out = append(out, text)
	}
	return out
}
