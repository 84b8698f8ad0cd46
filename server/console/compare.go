package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// comparePage compares two versions.
type comparePage struct {
	frame
	From, To   int
	EnvURL     string
	Olds, News []choice
	Diff       diffList
	Views      savedViews
	Problem    string
}

// changesURL is the address of what changed in a version since the one that was active before it.
func changesURL(env uuid.UUID, to int) string {
	return envURL(env) + "/compare?to=" + strconv.Itoa(to)
}

// versionChoice says which version a choice stands for.
func versionChoice(v intent.Version) string {
	parts := []string{strconv.Itoa(v.Number)}
	if v.Provenance.Commit != "" {
		parts = append(parts, short(v.Provenance.Commit))
	}
	if subject := []rune(v.Provenance.Subject); len(subject) > 30 {
		parts = append(parts, strings.TrimSpace(string(subject[:30]))+"…")
	} else if len(subject) > 0 {
		parts = append(parts, string(subject))
	}
	parts = append(parts, v.Created.UTC().Format("2 Jan 2006 15:04"))
	switch {
	case v.Preview:
		parts = append(parts, "preview")
	case v.Status == intent.VersionActive:
		parts = append(parts, "deployed")
	}
	return strings.Join(parts, " · ")
}

func (c *console) compare(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Compare versions", "versions",
		crumb{Text: "Versions", URL: envURL(e.ID) + "/versions"}, crumb{Text: "Compare"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	p := comparePage{frame: f, EnvURL: envURL(e.ID)}
	page, err := c.store.Versions(r.Context(), e.ID, intent.ListQuery{Limit: 200})
	if err != nil {
		return view{}, err
	}
	if p.From, p.To, err = c.toCompare(r, e, page.Items); err != nil {
		return view{}, err
	}
	for _, v := range page.Items {
		number := strconv.Itoa(v.Number)
		p.Olds = append(p.Olds, choice{number, versionChoice(v), v.Number == p.From})
		p.News = append(p.News, choice{number, versionChoice(v), v.Number == p.To})
	}
	switch {
	case p.To == 0:
		p.Problem = "There are not two versions to compare yet."
	case p.From == 0:
		p.Problem = "No version that is still kept was deployed before version " + strconv.Itoa(p.To) + "."
	case p.From == p.To:
		p.Problem = "Choose two different versions."
	}
	if p.Problem != "" {
		return view{template: "compare", data: p}, nil
	}
	of := intent.Compared{Environment: e.ID, From: p.From, To: p.To}
	keep := url.Values{"from": {strconv.Itoa(p.From)}, "to": {strconv.Itoa(p.To)}}
	p.Views, err = c.savedViews(r, e, intent.ViewsOfComparisons, envURL(e.ID)+"/compare", keep)
	if err != nil {
		return view{}, err
	}
	p.Diff, _, err = c.differences(r, e, of, true, diffPlace{path: envURL(e.ID) + "/compare", keep: keep,
		was: "Version " + strconv.Itoa(p.From), will: "Version " + strconv.Itoa(p.To),
		version: versionURL(e.ID, p.To), versions: true})
	if fault.Is(err, fault.NotFound) {
		p.Problem = "One of these versions does not exist any more."
		return view{template: "compare", data: p}, nil
	}
	return view{template: "compare", data: p}, err
}

// toCompare returns the versions that a request compares, the older first. Without one to compare with it is the
// version that was active before, never a preview. 0 stands for a version that does not exist.
func (c *console) toCompare(r *http.Request, e intent.Environment, newest []intent.Version) (from, to int, err error) {
	from, errFrom := strconv.Atoi(r.URL.Query().Get("from"))
	to, errTo := strconv.Atoi(r.URL.Query().Get("to"))
	if errTo != nil {
		errFrom = errTo
		to = 0
		for _, v := range newest {
			if !v.Preview {
				to = v.Number
				break
			}
		}
	}
	if errFrom != nil {
		if to == 0 {
			return 0, 0, nil
		}
		from, err = c.store.ActiveBefore(r.Context(), e.ID, to)
		return from, to, err
	}
	return min(from, to), max(from, to), nil
}
