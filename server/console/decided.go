package console

import (
	"html/template"
	"net/http"
	"strconv"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// decidedPage shows who decided the values of a resource in one version, also in one
// that is not deployed, such as a preview of a pull request.
type decidedPage struct {
	frame
	ID, Version, VersionURL, ResourceURL string
	Problem                              string
	Desired                              desired
}

func (c *console) decided(r *http.Request) (view, error) {
	e, v, err := c.findVersion(r)
	if err != nil {
		return view{}, err
	}
	id, err := intent.ParseResourceID(r.URL.Query().Get("id"))
	if err != nil {
		return view{}, err
	}
	number := strconv.Itoa(v.Number)
	f, err := c.frame(r, "Who decided", "versions",
		crumb{Text: "Versions", URL: envURL(e.ID) + "/versions"},
		crumb{Text: "Version " + number, URL: versionURL(e.ID, v.Number)}, crumb{Text: "Who decided"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	p := decidedPage{
		frame: f, ID: id.String(), Version: number, VersionURL: versionURL(e.ID, v.Number),
		ResourceURL: resourceURL(e.ID, id),
	}
	resource, err := c.store.VersionResource(r.Context(), e.ID, v.Number, id)
	if fault.Is(err, fault.NotFound) {
		p.Problem = "Version " + number + " does not have this resource."
		return view{template: "decided", data: p}, nil
	}
	if err != nil {
		return view{}, err
	}
	resource.Version = v.Number
	p.Desired = desiredOf(intent.ResourceDetail{Resource: resource}, nil)
	if err := c.addOrigins(r.Context(), e, resource, &p.Desired); err != nil {
		return view{}, err
	}
	if !p.Desired.Origins {
		p.Problem = "This version does not record where its values were set. Sync to make one that does."
	}
	return view{template: "decided", data: p}, nil
}

// decidedURL is the address of the page, at one attribute.
func decidedURL(version string, id intent.ResourceID, attribute string) string {
	return version + "/decided?id=" + template.URLQueryEscaper(id.String()) +
		"#attribute-" + template.URLQueryEscaper(attribute)
}
