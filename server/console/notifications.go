package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// bell links to the notifications of an environment.
type bell struct {
	N   int // unread
	URL string
	On  bool // the page shown is that of the notifications
}

// notificationsPage lists the notifications of an environment.
type notificationsPage struct {
	frame
	All  bool // cleared ones, too
	List notificationTable
}

type notificationTable struct {
	EnvURL string
	Back   string
	Rows   []notificationRow
	Pager  pager
	All    bool
	Unread bool // there are unread ones
}

type notificationRow struct {
	ID      uuid.UUID
	State   state
	Title   string
	URL     string // of the page that it is about; empty for none
	Message string
	Long    bool
	Last    time.Time
	Created time.Time
	Times   int
	Read    bool
}

var severityStates = map[intent.Severity]state{
	intent.SeverityError: {"failed", "error"}, intent.SeverityWarning: {"differs", "warning"},
	intent.SeveritySuccess: {"intended", "success"}, intent.SeverityInfo: {"none", "info"},
	intent.SeverityMessage: {"none", "message"},
}

func (c *console) notifications(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Notifications", "notifications", crumb{Text: "Notifications"})
	if err != nil {
		return view{}, err
	}
	p := notificationsPage{frame: f, All: r.URL.Query().Get("show") == "all"}
	l := listingOf(r, store.NotificationList, envURL(e.ID)+"/notifications")
	l.query.Sort = "last"
	if p.All {
		l.keep.Set("show", "all")
	} else {
		l.query.Filters["cleared"] = []string{"false"}
	}
	page, err := c.store.Notifications(r.Context(), e.ID, l.query)
	if err != nil {
		return view{}, err
	}
	p.List = notificationTable{EnvURL: envURL(e.ID), Back: f.Back, All: p.All, Unread: f.Bell != nil && f.Bell.N > 0}
	for _, n := range page.Items {
		p.List.Rows = append(p.List.Rows, notificationRow{
			ID: n.ID, State: severityStates[n.Severity], Title: n.Title, URL: pageOf(e.ID, n.URI), Message: n.Message,
			Long: isLong(n.Message), Last: n.Last, Created: n.Created, Times: n.Times, Read: n.Read,
		})
	}
	p.List.Pager = pagerOf(l, page, func(n intent.Notification) (string, string) {
		return stamp(n.Last), n.ID.String()
	})
	return view{
		template: "notifications", data: p, fragments: []fragment{{"notificationlist", "notificationlist", p.List}},
	}, nil
}

// pageOf returns the address of the page about what an address of the API names; empty when there is none.
func pageOf(env uuid.UUID, uri string) string {
	path, found := strings.CutPrefix(uri, "/api/v2/")
	if !found {
		return ""
	}
	kind, rest, _ := strings.Cut(path, "/")
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return ""
	}
	switch kind {
	case "compilereport":
		if id, err := uuid.Parse(rest); err == nil {
			return runURL(env, id)
		}
	case "desiredstate":
		if n, err := strconv.Atoi(rest); err == nil {
			return versionURL(env, n)
		}
	case "resource":
		if id, err := intent.ParseResourceID(rest); err == nil {
			return resourceURL(env, id)
		}
	case "agents":
		return envURL(env) + "/agents"
	case "dryrun":
		_, run, _ := strings.Cut(rest, "/")
		if id, err := uuid.Parse(run); err == nil {
			return envURL(env) + "/dryruns/" + id.String()
		}
	case "environment_settings":
		return envURL(env) + "/settings"
	}
	return ""
}

// doNotification marks one notification, or all of them, as read, or clears one.
func (c *console) doNotification(r *http.Request, e intent.Environment) (string, error) {
	next := back(r, envURL(e.ID)+"/notifications", "read")
	if r.PostFormValue("all") == "yes" {
		return next, c.control.MarkNotificationsRead(r.Context(), e.ID)
	}
	id, err := uuid.Parse(r.PostFormValue("id"))
	if err != nil {
		return "", fault.New("console.notification", fault.NotFound, "there is no such notification")
	}
	yes := true
	var cleared *bool
	if r.PostFormValue("clear") == "yes" {
		cleared = &yes
	}
	_, err = c.control.MarkNotification(r.Context(), e.ID, id, &yes, cleared)
	return next, err
}
