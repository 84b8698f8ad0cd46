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

// A file failed. The last one of a chain waits because of it, by way of those between, and both its page and
// the lists say so.
func TestWhatWaitsNamesTheRootOfItsChain(t *testing.T) {
	e := newEstate(t, 5, func(i int) intent.ResourceID {
		return intent.ResourceID{
			Type: "fs::File", Agent: "web01", Attribute: "path", Value: fmt.Sprintf("/srv/%d", i),
		}
	}, func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	})
	e.ends(0, intent.StatusFailed, intent.NotBlocked)
	for i := 1; i < 5; i++ {
		e.ends(i, intent.StatusSkipped, intent.TemporarilyBlocked)
	}
	link := func(i int) string {
		return fmt.Sprintf(`<a class="mono" href="%s">%s</a>`,
			strings.ReplaceAll(resourceURL(e.env, e.ids[i]), "&", "&amp;"), e.ids[i])
	}
	first := "for " + link(0) + " (failed)"
	third := first + ", by way of " + link(2) + " and 1 more"
	for _, path := range []string{"", "/resources"} {
		contains(t, get(t, e.h, envURL(e.env)+path).Body.String(), first+"</p>", third+"</p>")
	}
	contains(t, get(t, e.h, resourceURL(e.env, e.ids[1])).Body.String(), "It waits "+first+".")
	contains(t, get(t, e.h, resourceURL(e.env, e.ids[3])).Body.String(), "It waits "+third+".")
}
