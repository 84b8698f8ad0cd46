package api

import (
	"context"

	"ordain.dev/ordain/internal/intent"
)

// maxLineDiffs is how many resources of an answer have their changes by line.
const maxLineDiffs = 500

// addLines adds to the attributes of differences what changes by line; shown returns those of a difference.
func (s *server) addLines(
	ctx context.Context, env intent.EnvironmentID, diffs []intent.ResourceDiff,
	shown func(i int) map[string]attributeDiff,
) error {
	e, err := s.store.Environment(ctx, env)
	if err != nil {
		return err
	}
	var attributes []map[string]intent.AttributeChange
	for _, d := range diffs[:min(len(diffs), maxLineDiffs)] {
		attributes = append(attributes, d.Attributes)
	}
	lines, err := s.control.LineDiffs(ctx, e, attributes)
	for i := range lines {
		to := shown(i)
		for name, d := range lines[i] {
			one := to[name]
			one.LineDiff = d.String()
			to[name] = one
		}
	}
	return err
}
