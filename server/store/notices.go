package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// overrideNotice tells people that an override began or, when somebody ended it,
// that it is over.
func overrideNotice(o intent.Override) intent.Notice {
	agents := "all agents"
	if len(o.Agents) > 0 {
		agents = strings.Join(o.Agents, ", ")
	}
	n := intent.Notice{Severity: intent.SeverityWarning, URI: "/api/v2/agents"}
	if o.EndedBy != "" {
		n.Severity, n.Title = intent.SeverityInfo, o.EndedBy+" ended an override"
		n.Message = fmt.Sprintf("Windows and freezes hold changes of %s again. %s had let them through: %s",
			agents, o.By, o.Reason)
		return n
	}
	n.Title = o.By + " lets changes through"
	n.Message = fmt.Sprintf("Until %s, windows and freezes hold no changes of %s: %s",
		o.Until.UTC().Format("2006-01-02 15:04 UTC"), agents, o.Reason)
	return n
}

// diffWords are the words of the console for what a dry run found.
var diffWords = map[intent.DiffKind]string{
	intent.DiffAdded: "created", intent.DiffModified: "changed", intent.DiffDeleted: "purged",
	intent.DiffUnmodified: "unchanged", intent.DiffAgentDown: "not reached", intent.DiffUnknown: "unknown",
	intent.DiffUndefined: "undefined", intent.DiffSkipped: "blocked",
}

// dryRunEnding tells people how a dry run ended, with how many resources it found
// of each kind. It is nil for a cancelled dry run: the person who cancelled it knows. It rings no bell, because the
// person who asked for the dry run looks at its page, and a pull request gets a comment.
func dryRunEnding(d intent.DryRun, found map[intent.DiffKind]int) *intent.Notice {
	of := fmt.Sprintf("version %d", d.Version)
	if d.Commit != "" {
		of = d.Commit
	}
	n := &intent.Notice{
		URI: fmt.Sprintf("/api/v2/dryrun/%d/%s", d.Version, d.ID), Compile: d.Compile, Quiet: true,
	}
	switch d.Ending {
	case intent.DryRunDone:
		n.Severity, n.Title = intent.SeverityInfo, "Dry run of "+of+" ready"
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(found)) {
			counts = append(counts, fmt.Sprintf("%d %s", found[kind], cmp.Or(diffWords[kind], string(kind))))
		}
		resources := "resources"
		if d.Total == 1 {
			resources = "resource"
		}
		n.Message = fmt.Sprintf("%d %s looked at: %s.", d.Total, resources, strings.Join(counts, ", "))
	case intent.DryRunFailed:
		n.Severity, n.Title, n.Message = intent.SeverityWarning, "Dry run of "+of+" failed", d.Reason
	default:
		return nil
	}
	return n
}
