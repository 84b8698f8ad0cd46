package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// logs holds the flags of `ordain logs`.
type logs struct {
	remote
	resource, agent, kind, action, level, text, since, until string
	lines                                                    int
	follow                                                   bool
}

const (
	// followEvery is how often `ordain logs --follow` asks for more.
	followEvery = time.Second
	// followOverlap is how far it looks back each time: actions that end at about the same time are not recorded in the
	// order in which they ended.
	followOverlap = 3 * time.Second
)

// newLogs makes `ordain logs`.
func newLogs() *cobra.Command {
	l := &logs{}
	c := command("logs ENVIRONMENT", "Show what deployments wrote, newest last",
		func(c *cobra.Command, args []string) error { return l.run(c, args[0]) })
	l.add(c)
	f := c.Flags()
	f.BoolVarP(&l.follow, "follow", "f", false, "go on with what is written from now on, until it is interrupted")
	f.IntVarP(&l.lines, "lines", "n", 100, "about how many lines to begin with, at most 1000")
	f.StringVar(&l.resource, "resource", "", "only resources whose id contains this")
	f.StringVar(&l.agent, "agent", "", "only agents whose name contains this")
	f.StringVar(&l.kind, "type", "", "only types of resources whose name contains this")
	f.StringVar(&l.action, "action", "", "only one kind of action: deploy, dryrun, getfact")
	f.StringVar(&l.level, "level", "", "only lines of this level, such as WARNING, and graver ones")
	f.StringVar(&l.text, "text", "", "only lines that contain this")
	f.StringVar(&l.since, "since", "",
		"only what ended since this time, such as 2026-11-28T09:30:00Z, or for so long: 15m")
	f.StringVar(&l.until, "until", "", "only what ended before this time")
	return c
}

// logAnswer is a page of the log.
type logAnswer struct {
	Data     []row `json:"data"`
	Metadata struct {
		Earlier, Later, Newest *string
		Full                   bool
	} `json:"metadata"`
}

func (l *logs) run(c *cobra.Command, env string) error {
	server, err := l.client()
	if err != nil {
		return err
	}
	e, err := server.Find(c.Context(), env)
	if err != nil {
		return err
	}
	ask := func(after *string) (a logAnswer, err error) {
		query := l.query()
		if after != nil {
			query.Set("after", *after)
			query.Set("limit", "1000")
		}
		raw, err := server.Whole(c.Context(), "/api/v2/logs?"+query.Encode(), e.ID)
		if err == nil {
			err = json.Unmarshal(raw, &a)
		}
		return a, err
	}
	page, err := ask(nil)
	if err != nil {
		return err
	}
	if l.format == "json" && !l.follow {
		return l.showJSON(c, page.Data)
	}
	f := &follower{logs: l, seen: map[string]time.Time{}}
	if err := f.print(c, page.Data); err != nil {
		return err
	}
	if len(page.Data) == 0 && page.Metadata.Earlier != nil {
		fmt.Fprintf(c.ErrOrStderr(), "nothing matches among the newest actions; go on with --until %s\n",
			strings.Split(*page.Metadata.Earlier, ",")[0])
	}
	f.reach(page.Metadata.Newest)
	for l.follow {
		select {
		case <-c.Context().Done():
			return nil
		case <-time.After(followEvery):
		}
		if err := f.printNew(c, ask); err != nil {
			if c.Context().Err() != nil {
				return nil
			}
			return err
		}
	}
	return nil
}

// query returns the filters as the API has them.
func (l *logs) query() url.Values {
	query := url.Values{"limit": {strconv.Itoa(l.lines)}}
	since := l.since
	if ago, err := time.ParseDuration(since); err == nil {
		since = time.Now().Add(-ago).UTC().Format(time.RFC3339)
	}
	for name, value := range map[string]string{
		"resource": l.resource, "agent": l.agent, "resource_type": l.kind, "action": l.action,
		"minimal_log_level": l.level, "message": l.text, "since": since, "until": l.until,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// clientTime is how the API writes times.
const clientTime = "2006-01-02T15:04:05.000000-07:00"

// follower prints each line once.
type follower struct {
	*logs
	first  time.Time            // when the first action that was printed ended: nothing earlier is printed
	newest time.Time            // how far the log has been read; zero when it was empty
	seen   map[string]time.Time // the actions that have been printed, with the times at which they ended
}

// reach notes how far the log has been read.
func (f *follower) reach(newest *string) {
	if newest == nil {
		return
	}
	at, err := time.Parse(time.RFC3339Nano, strings.Split(*newest, ",")[0])
	if err == nil && at.After(f.newest) {
		f.newest = at
	}
}

// printNew prints what was recorded since the last time.
func (f *follower) printNew(c *cobra.Command, ask func(after *string) (logAnswer, error)) error {
	var from *string
	if !f.newest.IsZero() {
		back := f.newest.Add(-followOverlap)
		for id, ended := range f.seen {
			if ended.Before(back) {
				delete(f.seen, id)
			}
		}
		text := back.UTC().Format(time.RFC3339Nano)
		from = &text
	}
	for {
		page, err := ask(from)
		if err == nil {
			err = f.print(c, page.Data)
		}
		if err != nil {
			return err
		}
		f.reach(page.Metadata.Newest)
		if from = page.Metadata.Later; from == nil {
			return nil
		}
	}
}

// print writes the lines of actions that have not been printed yet: one object each with -o json.
func (f *follower) print(c *cobra.Command, rows []row) error {
	out := json.NewEncoder(c.OutOrStdout())
	out.SetEscapeHTML(false)
	fresh := map[string]time.Time{}
	for _, one := range rows {
		id := cell(one, "action_id")
		ended, err := time.Parse(clientTime, cell(one, "finished"))
		if err != nil {
			return err
		}
		if f.first.IsZero() {
			f.first = ended
		}
		if _, known := f.seen[id]; known || ended.Before(f.first) {
			continue
		}
		fresh[id] = ended
		if f.format == "json" {
			if err := out.Encode(one); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(c.OutOrStdout(), "%s  %-8s %-7s %s  %s\n", cell(one, "timestamp"), cell(one, "level"),
			cell(one, "action"), cell(one, "resource_id"), cell(one, "msg"))
	}
	maps.Copy(f.seen, fresh)
	return nil
}
