package console

import (
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// A directory failed, the file in it waits for it, and a file on another agent waits for that agent. The lists say so
// beside each of them.
func TestListsSayForWhatResourcesWait(t *testing.T) {
	e := newEstate(t, 3, func(i int) intent.ResourceID {
		return intent.ResourceID{
			Type: "fs::File", Agent: fmt.Sprintf("web%02d", i/2), Attribute: "path", Value: fmt.Sprintf("/srv/%d", i),
		}
	}, func(i int) []int {
		if i == 1 {
			return []int{0}
		}
		return nil
	})
	e.ends(0, intent.StatusFailed, intent.NotBlocked)
	e.ends(1, intent.StatusSkipped, intent.TemporarilyBlocked)
	must(t, e.s.Control.PauseAgent(t.Context(), e.env, "web01", true))
	need := fmt.Sprintf(`for <a class="mono" href="%s">%s</a> (failed)`,
		strings.ReplaceAll(resourceURL(e.env, e.ids[0]), "&", "&amp;"), e.ids[0])
	for _, path := range []string{"", "/resources"} {
		contains(t, get(t, e.h, envURL(e.env)+path).Body.String(), need, "for its agent to be unpaused")
	}
}
