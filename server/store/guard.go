package store

import (
	"fmt"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// holdOf returns why a guard holds a version that takes away r, or nil if it does not.
func holdOf(g intent.Guard, r intent.Removal, at time.Time) *intent.Hold {
	h := intent.Hold{Since: at, Removal: r}
	var texts []string
	hold := func(why intent.HoldReason, format string, args ...any) {
		h.Reasons = append(h.Reasons, why)
		texts = append(texts, fmt.Sprintf(format, args...))
	}
	if r.ProtectedCount > 0 {
		hold(intent.HeldProtected, "it takes away %s, which protected_resources protects", protectedText(r))
	}
	switch n := r.Count(); {
	case r.Total == 0 && r.BeforeTotal > 0:
		hold(intent.HeldEmpty, "it is empty, while version %d has %s", r.Before, countResources(r.BeforeTotal))
	case n > 0 && n >= g.Minimum && n*100 > r.Live*g.Share:
		hold(intent.HeldShare, "it takes away %d of %s, more than %d%%: %s", n, countResources(r.Live),
			g.Share, typesText(r))
	}
	if len(texts) == 0 {
		return nil
	}
	h.Text = strings.Join(texts, "; ")
	return &h
}

func countResources(n int) string {
	if n == 1 {
		return "1 resource"
	}
	return fmt.Sprintf("%d resources", n)
}

func protectedText(r intent.Removal) string {
	if r.ProtectedCount == 1 && len(r.Protected) == 1 {
		return r.Protected[0].ID.String()
	}
	text := countResources(r.ProtectedCount)
	if len(r.Protected) > 0 {
		text += " such as " + r.Protected[0].ID.String()
	}
	return text
}

// typesText names the types that lose the most resources.
func typesText(r intent.Removal) string {
	const named = 3
	var parts []string
	rest := r.Count()
	for i, t := range r.Types {
		if i == named {
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", t.Gone+t.Purged, t.Type))
		rest -= t.Gone + t.Purged
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d of other types", rest))
	}
	return strings.Join(parts, ", ")
}

// HeldError is the error for releasing a version that is held.
type HeldError struct {
	Version int
	Hold    intent.Hold
}

// Error says which version is held, and why.
func (e *HeldError) Error() string {
	return fmt.Sprintf("version %d is held: %s", e.Version, e.Hold.Text)
}

// Advice says what to do about it.
func (e *HeldError) Advice() string {
	if !e.Hold.Confirmable() {
		return "nothing is deployed; keep these in the model, or take them out of the setting protected_resources, " +
			"then release the version again"
	}
	return fmt.Sprintf("nothing is deployed; look at what goes, then confirm it in the console, with `ordain version "+
		"confirm ENVIRONMENT %d`, or with POST /api/v2/desiredstate/%d/confirm", e.Version, e.Version)
}
