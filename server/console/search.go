package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// commitText matches a commit, or its first seven characters or more.
var commitText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{7,40}$`) })

// search redirects to the page of what was named: a version, a commit or a resource; otherwise to the list of resources
// whose value contains the text. Outside an environment it looks for an environment.
func (c *console) search(w http.ResponseWriter, r *http.Request) {
	target, err := c.find(r, strings.TrimSpace(r.URL.Query().Get("q")))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// find returns the address of what a text names.
func (c *console) find(r *http.Request, text string) (string, error) {
	ctx := r.Context()
	env, err := uuid.Parse(r.URL.Query().Get("env"))
	if err != nil {
		all, err := c.store.Environments(ctx)
		if err != nil {
			return "", err
		}
		for _, e := range access.Visible(ctx, all) {
			named := strings.Contains(strings.ToLower(e.Name), strings.ToLower(text))
			if text != "" && (named || e.ID.String() == text) {
				return envURL(e.ID), nil
			}
		}
		return "", fault.New("console.search", fault.NotFound, "no environment has this in its name: "+text).
			Hint("choose one on the left")
	}
	e, err := c.store.Environment(ctx, env)
	if fault.Is(err, fault.NotFound) || err == nil && !access.Of(ctx).Sees(access.TargetOf(e)) {
		return "", noEnvironment(env.String())
	}
	if err != nil {
		return "", err
	}
	if err := access.Check(ctx, access.SeeResources, access.TargetOf(e), noEnvironment(env.String())); err != nil {
		return "", err
	}
	if text == "" {
		return envURL(env) + "/resources", nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(text), "v")); err == nil && len(text) < 7 {
		if _, err := c.store.Version(ctx, env, n); err == nil {
			return versionURL(env, n), nil
		}
	}
	if commitText().MatchString(text) {
		page, err := c.store.Versions(ctx, env, intent.ListQuery{})
		if err != nil {
			return "", err
		}
		for _, v := range page.Items {
			if strings.HasPrefix(v.Provenance.Commit, text) {
				return versionURL(env, v.Number), nil
			}
		}
	}
	if id, _, err := intent.ParseResourceVersionID(text); err == nil {
		if _, err := c.store.Resource(ctx, env, id); err == nil {
			return resourceURL(env, id), nil
		}
	}
	return envURL(env) + "/resources?" + url.Values{"value": {text}}.Encode(), nil
}
