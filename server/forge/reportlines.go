package forge

import (
	"context"
	"strings"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/contents"
	"ordain.dev/ordain/server/forge/client"
)

// maxLines bounds how many bytes of changed lines an attribute shows in a comment.
const maxLines = 3000

// lines compares by line what a comment can show of differences. Secrets of the environment are masked in them.
func (s *Service) lines(
	ctx context.Context, e intent.Environment, diffs []intent.ResourceDiff,
) (map[intent.ResourceID]map[string]*linediff.Diff, error) {
	var ids []intent.ResourceID
	var attributes []map[string]intent.AttributeChange
	for _, kind := range reportKinds {
		for _, d := range diffs {
			if kind.is(d.Kind) && d.Kind.Touches() && len(ids) < maxResources {
				ids, attributes = append(ids, d.ID), append(attributes, d.Attributes)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := contents.Reader{
		Store: s.cfg.Store, Project: e.ProjectID, Mask: s.cfg.Sources.Redactor(ctx, e),
	}.Diffs(ctx, attributes)
	if err != nil {
		return nil, err
	}
	out := map[intent.ResourceID]map[string]*linediff.Diff{}
	for i, id := range ids {
		out[id] = found[i]
	}
	return out, nil
}

// lineText writes the changed lines of an attribute; it is empty if the comment has to show the values instead. More
// people read a comment than the console, so contents that look like a secret are not shown.
func lineText(id intent.ResourceID, name string, d *linediff.Diff) string {
	if d == nil || len(d.Lines) == 0 || contents.SecretName(name) || contents.SecretName(id.Value) {
		return ""
	}
	text := client.Tame(d.String())
	if strings.Contains(text, "PRIVATE KEY") {
		return "@@ a private key; not shown here @@\n"
	}
	if len(text) <= maxLines {
		return text
	}
	text = text[:maxLines]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	return text + "@@ the rest is not shown here: " + d.Summary() + " @@\n"
}
