package control

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/comparison"
	"ordain.dev/ordain/server/contents"
)

// Compare returns the index of what differs between two versions, from the older to the newer, or of what a dry run
// found. final says that this changes no more.
func (c *Control) Compare(ctx context.Context, of intent.Compared, final bool) (*comparison.Index, error) {
	if of.DryRun == uuid.Nil && of.From >= of.To {
		return nil, fault.New("control.Compare", fault.Invalid, "the first version must be older than the second")
	}
	return c.comparisons.Index(ctx, of, final)
}

// LineDiffs compares the attributes of resources by line, where that says more than their values. The contents of files
// are compared for those who may read them. Each resource has a map by attribute.
func (c *Control) LineDiffs(
	ctx context.Context, e intent.Environment, resources []map[string]intent.AttributeChange,
) ([]map[string]*linediff.Diff, error) {
	return c.contents(ctx, e).Diffs(ctx, resources)
}

// FoundDiffs compares what was found on machines with what is wanted, as LineDiffs does. Of contents that a handler
// reports by their hashes only, it returns those that are wanted.
func (c *Control) FoundDiffs(
	ctx context.Context, e intent.Environment, resources []map[string]intent.AttributeChange,
) ([]map[string]*linediff.Diff, error) {
	reader := c.contents(ctx, e)
	reader.Found = true
	return reader.Diffs(ctx, resources)
}

func (c *Control) contents(ctx context.Context, e intent.Environment) contents.Reader {
	return contents.Reader{
		Store: c.cfg.Store, Project: e.ProjectID, Mask: c.cfg.Sources.Redactor(ctx, e),
		NoFiles: !access.Of(ctx).Decide(access.SeeFiles, access.TargetOf(e)).Allowed,
	}
}
