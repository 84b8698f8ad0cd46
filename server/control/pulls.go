package control

import (
	"context"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// pull acts on a webhook about a pull or merge request: the forge is asked
// about it. What the webhook says of author, fork and commits is not believed.
func (j *judgement) pull(ctx context.Context, d intent.Delivery) {
	p := d.Event.Pull
	if p == nil || p.Action == intent.PullOther {
		j.end(d, intent.OutcomeSkipped, nil, "nothing of the pull request that a preview shows was changed")
		return
	}
	err := j.control.PullMoved(ctx, j.e.ID, p.Number)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.Invalid):
		j.end(d, intent.OutcomeSkipped, nil, "%s", err)
	case err != nil:
		j.end(d, intent.OutcomeFailed, nil, "%s", err)
	default:
		j.end(d, intent.OutcomeStarted, nil, "the forge is asked about pull request %d", p.Number)
	}
}
