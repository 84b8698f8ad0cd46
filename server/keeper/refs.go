package keeper

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// whyIgnored returns why an environment with this branch setting does not follow the ref
// that moved; empty if it does. Without a setting, an environment follows the default
// branch. If the forge does not name that branch, any branch counts, and the fetch finds
// out which one it is.
func whyIgnored(setting string, e intent.HookEvent) string {
	const heads, tags = "refs/heads/", "refs/tags/"
	branch, isBranch := strings.CutPrefix(e.Ref, heads)
	tag, isTag := strings.CutPrefix(e.Ref, tags)
	other := func(what string) string {
		if isTag {
			return fmt.Sprintf("it follows %s, not tags", what)
		}
		return fmt.Sprintf("it follows %s, not %s", what, shortRef(e.Ref))
	}
	switch {
	case !isBranch && !isTag:
		return fmt.Sprintf("%s is neither a branch nor a tag", e.Ref)
	case setting == "":
		if isBranch && (e.DefaultBranch == "" || e.DefaultBranch == branch) {
			return ""
		}
		return other("the default branch")
	case strings.HasPrefix(setting, "semver:"):
		if isTag {
			return ""
		}
		return fmt.Sprintf("it follows tags in the range %s, not branches", strings.TrimPrefix(setting, "semver:"))
	case isCommit(setting):
		return "it is bound to the commit " + setting[:7]
	case strings.HasPrefix(setting, "refs/"):
		if setting == e.Ref {
			return ""
		}
		return other(shortRef(setting))
	case setting == branch && isBranch, setting == tag && isTag:
		return ""
	}
	return other(setting)
}

func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func shortRef(ref string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if short, ok := strings.CutPrefix(ref, prefix); ok {
			return short
		}
	}
	return ref
}

// describe sums up a webhook: "ada pushed 1234567 to main: fix the doors".
func describe(e intent.HookEvent) string {
	who := e.Sender
	if who == "" {
		who = "someone"
	}
	if e.Deleted {
		return fmt.Sprintf("%s deleted %s", who, shortRef(e.Ref))
	}
	text := who + " pushed"
	if e.Commit != "" {
		text += " " + e.Commit[:7]
	}
	if e.Ref != "" {
		text += " to " + shortRef(e.Ref)
	}
	if e.Subject != "" {
		text += ": " + e.Subject
	}
	return text
}
