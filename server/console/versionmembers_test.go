package console

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// The page of a version counts its resources by type and by what became of them, and chooses among them. The deployed
// version has their states; in another one, the page says which are deployed otherwise, and which are not deployed.
func TestVersionPageFiltersItsResources(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	ctx, env := t.Context(), r.Production.ID
	says := func(number int, rest string, want, not []string) {
		t.Helper()
		body := get(t, h, versionURL(env, number)+rest).Body.String()
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("version %d%s does not contain %q", number, rest, w)
			}
		}
		for _, w := range not {
			if strings.Contains(body, w) {
				t.Errorf("version %d%s contains %q", number, rest, w)
			}
		}
	}
	says(7, "", []string{">41</td>", "1–50 of 204", "as intended"},
		[]string{"deployed otherwise"})
	says(7, "?type=fs::Directory", []string{"41 in all"}, []string{"1–50 of 204"})
	says(7, "?status=failed&value=site-023", []string{">failed</span></span></td><td class=\"muted\">fs::File",
		"1 in all", r.FailedFile.Value}, []string{"fs::Directory</td>"})
	says(7, "?value=no-such-thing", []string{"No resource of this version matches the filter."}, nil)

	v := intent.NewVersion{Environment: env}
	fresh := intent.ResourceID{Type: "fs::File", Agent: "web1", Attribute: "path", Value: "/new"}
	for _, id := range []intent.ResourceID{r.FailedFile, fresh} {
		v.Resources = append(v.Resources, intent.Resource{
			ID: id, Attributes: []byte(`{"content": "other"}`), AttributeHash: "1",
		})
	}
	number, err := r.Store.StoreVersion(ctx, v, r.Now())
	must(t, err)
	says(number, "", []string{"deployed otherwise", "not deployed", "2 in all"}, []string{">failed<"})
	says(number, "?status=absent", []string{fresh.Value, "1 in all"}, []string{r.FailedFile.Value})
}
