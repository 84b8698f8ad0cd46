package forge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/forge/client"
)

const (
	// maxExplained bounds for how many resources a comment names the lines behind changes.
	maxExplained = 20
	// explainTime bounds how long a comment waits for that.
	explainTime = 20 * time.Second
)

// decided finds, for the values that a preview would change, the line that was committed
// last among those that they come from. It leaves out what it cannot tell.
func (s *Service) decided(
	ctx context.Context,
	env intent.EnvironmentID,
	version int,
	diffs []intent.ResourceDiff,
) map[intent.ResourceID]map[string]string {
	if s.cfg.Explain == nil || version == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	out := map[intent.ResourceID]map[string]string{}
	for _, d := range diffs {
		if d.Kind != intent.DiffModified || len(d.Attributes) == 0 {
			continue
		}
		if len(out) == maxExplained || ctx.Err() != nil {
			break
		}
		explained, err := s.cfg.Explain(ctx, env, version, d.ID)
		if err != nil {
			continue // a comment without it is better than none
		}
		lines := map[string]string{}
		for _, a := range explained.Attributes {
			if _, changed := d.Attributes[a.Name]; changed {
				if at, commit := provenance.Newest(a.Field); commit != nil && !commit.Uncommitted {
					lines[a.Name] = lineOf(at, commit)
				}
			}
		}
		out[d.ID] = lines
	}
	return out
}

func lineOf(at provenance.Place, c *provenance.Commit) string {
	return fmt.Sprintf("`%s:%d`, `%s` %s: %s", client.Code(at.File), at.Line,
		client.Code(intent.Revision{Commit: c.ID}.Short()), plain(c.Author), plain(c.Subject))
}

// decided writes the lines behind the changes of a resource.
func (r Report) decided(w *writer, d intent.ResourceDiff) {
	lines := r.Decided[d.ID]
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		w.line("  - `%s` comes from %s", client.Code(name), lines[name])
	}
}
