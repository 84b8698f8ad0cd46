package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// Report gathers what is known of the preview of a pull request, with everything that it would change.
func (s *Service) Report(ctx context.Context, e intent.Environment, p intent.PullRequest) (Report, error) {
	r := Report{
		Environment: e.Name, Pull: p, Command: ApproveCommand(e, p),
		Page: s.page(fmt.Sprintf("/e/%s/pulls/%d", e.ID, p.Number)),
	}
	var err error
	if p.Preview != nil && p.PreviewOf == p.Head {
		r.Version = p.Preview.Base
		if p.PreviewState() == intent.PreviewDone {
			if _, r.Diffs, err = s.cfg.Store.DryRun(ctx, e.ID, p.Preview.ID); err != nil {
				return r, err
			}
			r.Decided = s.decided(ctx, e.ID, p.Preview.Version, r.Diffs)
		}
	}
	if r.Lines, err = s.lines(ctx, e, r.Diffs); err != nil {
		return r, err
	}
	r.Review, err = s.Review(ctx, e, p, changedOf(r.Diffs))
	return r, err
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
