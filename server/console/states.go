package console

import "ordain.dev/ordain/internal/intent"

// state is how a state looks on all pages: a word, a shape and a colour. Key names the shape and the colour in the
// style sheet.
type state struct {
	Key  string
	Word string
}

// The looks of states on pages.
var (
	intended    = state{"intended", "as intended"}
	deploying   = state{"deploying", "deploying"}
	pending     = state{"differs", "to be deployed"}
	differs     = state{"differs", "differs"}
	failed      = state{"failed", "failed"}
	unavailable = state{"failed", "unavailable"}
	waiting     = state{"waiting", "waiting"}
	cancelled   = state{"waiting", "cancelled"}
	undefined   = state{"undefined", "undefined"}
	blocked     = state{"undefined", "blocked"}
	paused      = state{"paused", "paused"}
	halted      = state{"paused", "halted"}
	orphan      = state{"orphan", "orphan"}
	succeeded   = state{"intended", "succeeded"}
	superseded  = state{"none", "cancelled for a newer one"}
	finished    = state{"intended", "done"}
	running     = state{"deploying", "running"}
	notReached  = state{"none", "not reached"}
	notYet      = state{"none", "not yet"}
	notDeployed = state{"none", "not deployed"}
	active      = state{"intended", "active"}
	candidate   = state{"waiting", "candidate"}
	held        = state{"paused", "held"}
	retired     = state{"none", "was active"}
	skipped     = state{"none", "skipped"}
	rolledBack  = state{"differs", "rolled back"}
	unmanaged   = state{"orphan", "no longer managed"}
	added       = state{"intended", "added"}
	unreachable = state{"failed", "unreachable"}
	parked      = state{"paused", "parked"}
	ready       = state{"intended", "ready"}
	incomplete  = state{"paused", "incomplete"} // a dry run that could not look at everything
	dryRunOnly  = state{"waiting", "dry run"}
)

// stateOf returns the look of a resource's status.
func stateOf(s intent.Status) state {
	switch s {
	case intent.StatusDeployed:
		return intended
	case intent.StatusDeploying:
		return deploying
	case intent.StatusAvailable:
		return pending
	case intent.StatusNonCompliant:
		return differs
	case intent.StatusFailed:
		return failed
	case intent.StatusUnavailable:
		return unavailable
	case intent.StatusSkipped, intent.StatusSkippedForDependency:
		return waiting
	case intent.StatusCancelled:
		return cancelled
	case intent.StatusUndefined:
		return undefined
	case intent.StatusSkippedForUndefined:
		return blocked
	case intent.StatusOrphaned:
		return orphan
	case intent.StatusDry:
		return dryRunOnly
	}
	return state{"waiting", string(s)}
}

// worstFirst are the statuses of resources that are not as intended, in the order in which people want to see them.
var worstFirst = []intent.Status{
	intent.StatusFailed, intent.StatusUnavailable, intent.StatusUndefined, intent.StatusSkippedForUndefined,
	intent.StatusNonCompliant, intent.StatusSkipped, intent.StatusSkippedForDependency, intent.StatusCancelled,
	intent.StatusAvailable, intent.StatusDeploying,
}

// allStatuses are all statuses of resources of the active version, the best last.
var allStatuses = append(append([]intent.Status{}, worstFirst...), intent.StatusDeployed)

func runState(c intent.Compile) state {
	switch {
	case c.Completed == nil && c.Started == nil:
		return waiting
	case c.Completed == nil && c.Cancelled != nil:
		return state{"waiting", "being cancelled"}
	case c.Completed == nil:
		return running
	case c.Success != nil && *c.Success:
		return succeeded
	case c.SupersededBy != nil:
		return superseded
	case c.Cancelled != nil:
		return cancelled
	}
	return failed
}

func versionState(v intent.Version) state {
	if v.Held() {
		return held
	}
	switch v.Status {
	case intent.VersionActive:
		return active
	case intent.VersionCandidate:
		return candidate
	case intent.VersionRetired:
		return retired
	}
	return skipped
}

func diffState(k intent.DiffKind) state {
	switch k {
	case intent.DiffAdded:
		return state{"intended", "created"}
	case intent.DiffModified:
		return state{"differs", "changed"}
	case intent.DiffDeleted:
		return state{"failed", "purged"}
	case intent.DiffUnmodified:
		return state{"none", "unchanged"}
	case intent.DiffAgentDown:
		return state{"paused", "unknown: not reached"}
	case intent.DiffUnknown:
		return state{"paused", "unknown: the handler failed"}
	case intent.DiffUndefined:
		return undefined
	}
	return blocked
}
