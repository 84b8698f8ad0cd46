package console

import (
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// After a preview and a candidate, "what changed" compares with what was deployed before, never with the preview. A
// file whose hash changes shows its lines, equal changes are one, and a filter in the address chooses among the rest.
func TestCompareShowsLinesAndEqualChanges(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	ctx, env := t.Context(), r.Production
	files := make([]string, 2)
	for i, text := range []string{"welcome\nto the shop\n", "welcome\nto the new shop\n"} {
		var err error
		files[i], err = r.Store.PutFile(ctx, []byte(text), env.ProjectID)
		must(t, err)
	}
	store := func(preview bool, hash, prefix string) int {
		v := intent.NewVersion{Environment: env.ID, Preview: preview}
		add := func(id intent.ResourceID, attributes string) {
			v.Resources = append(v.Resources, intent.Resource{
				ID: id, Attributes: []byte(attributes), AttributeHash: attributes,
			})
		}
		add(intent.ResourceID{Type: "fs::File", Agent: "web1", Attribute: "path", Value: "/i"},
			fmt.Sprintf(`{"hash":%q}`, hash))
		for i := range 60 {
			add(intent.ResourceID{Type: "bench::Address", Agent: "r1", Attribute: "name", Value: fmt.Sprint(i)},
				fmt.Sprintf(`{"description":"%saddress %d"}`, prefix, i))
		}
		n, err := r.Store.StoreVersion(ctx, v, r.Now())
		must(t, err)
		return n
	}
	first := store(false, files[0], "")
	must(t, r.Control.SetSetting(ctx, env.ID, "prune_share", 100))
	must(t, r.Store.ReleaseVersion(ctx, env.ID, first, r.Now()))
	store(true, files[1], "other ")
	last := store(false, files[1], "new ")
	must(t, r.Store.ReleaseVersion(ctx, env.ID, last, r.Now()))
	page := func(rest string, want ...string) string {
		t.Helper()
		body := get(t, h, changesURL(env.ID, last)+rest).Body.String()
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%q: the page does not contain %q", rest, w)
			}
		}
		return body
	}
	body := page("", fmt.Sprintf("Version %d to %d", first, last), "By type and agent", "+ <ins>“new ”</ins>",
		`>60 <span class="mono">bench::Address</span></a>`, "<mark>new </mark>", "List them one by one")
	if strings.Contains(body, "bench::Address[r1,name=7]") {
		t.Error("the members of a group are listed")
	}
	page("&group=1", "bench::Address[r1,name=15]", "1–50 of 60")
	page("&type=fs::File", "fs::File[web1,path=/i]")
	page("&q=nothing", "No difference matches this filter.")
}
