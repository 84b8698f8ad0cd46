package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// orphansPage lists resources that are not managed any more.
type orphansPage struct {
	frame
	Filter orphanFilter
	List   orphanTable
}

type orphanFilter struct {
	Resource string
	Any      bool
}

type orphanTable struct {
	Rows  []orphanRow
	Pager pager
	Sorts []sortLink
	Any   bool
}

type orphanRow struct {
	Type, Agent, Value, ID, URL string
	// Last is the last version that had it, and Gone the one that was released then; 0 after a rollback.
	Last, Gone       int
	LastURL, GoneURL string
	GoneAt           *time.Time
	Deployed         int // the version that was deployed last, 0 for none
	DeployedURL      string
	LastRun          *time.Time
	Outcome          state // of the last run
}

func (c *console) orphans(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Orphans", "orphans", crumb{Text: "Orphans"})
	if err != nil {
		return view{}, err
	}
	l := listingOf(r, store.OrphanList, envURL(e.ID)+"/orphans")
	resource := strings.TrimSpace(r.URL.Query().Get("resource"))
	if resource != "" {
		l.filter("resource_id", resource, "resource", resource)
	}
	l.sort(r.URL.Query().Get("sort"))
	page, err := c.store.Orphans(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p := orphansPage{frame: f, Filter: orphanFilter{Resource: resource, Any: l.filtered()}}
	p.List = orphanTable{Any: p.Filter.Any, Sorts: l.sortLinks([]column{
		{"resource_type", "Type"}, {"resource_id_value", "Resource"}, {"agent", "Agent"},
		{"last_version", "Last in"},
	})}
	for _, o := range page.Items {
		row := orphanRow{
			Type: o.ID.Type, Agent: o.ID.Agent, Value: o.ID.Value, ID: o.ID.String(), URL: resourceURL(e.ID, o.ID),
			Last: o.LastVersion, LastURL: versionURL(e.ID, o.LastVersion), Gone: o.Gone,
			GoneURL: versionURL(e.ID, o.Gone), GoneAt: o.GoneAt, Deployed: o.LastDeployed,
			DeployedURL: versionURL(e.ID, o.LastDeployed), LastRun: o.LastRunAt,
			Outcome: lastRuns[o.LastRun],
		}
		p.List.Rows = append(p.List.Rows, row)
	}
	p.List.Pager = pagerOf(l, page, func(o store.Orphan) (string, string) {
		if l.query.Sort == "last_version" {
			return strconv.Itoa(o.LastVersion), o.ID.String()
		}
		return resourcePlace(l.query.Sort, o.ID, intent.StatusOrphaned)
	})
	return view{template: "orphans", data: p, fragments: []fragment{{"orphanlist", "orphanlist", p.List}}}, nil
}

// lastRuns are the looks of the last runs of handlers.
var lastRuns = map[intent.HandlerResult]state{
	intent.RunNew: notYet, intent.RunSuccessful: succeeded, intent.RunFailed: failed, intent.RunSkipped: skipped,
}
