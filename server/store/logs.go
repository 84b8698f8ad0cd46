package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/jsontext"
)

// The log of an environment holds what its actions wrote, in the order in which the actions ended: that is when their
// lines are recorded. A page holds whole actions. A filter that matches little does not make a page look at everything:
// after logReach actions it says how far it came, and the next page goes on from there.
//
//	oldest ◀─ Earlier ─ [ page: actions with lines that match ] ─ Later ─▶ newest

const (
	// logReach is how many actions one page looks at.
	logReach = 20_000
	// logChunk is how many actions one query of a page returns.
	logChunk = 100
	// logBytes ends a page early whose messages are long.
	logBytes = 4 << 20
)

// LogQuery chooses lines of the log of an environment. What is empty chooses all.
type LogQuery struct {
	Resource    intent.ResourceID // exactly this one
	Part        string            // of the id of the resource
	Agent, Type string            // parts of their names
	Kind        intent.ActionKind
	Level       string // this one or a graver one
	Text        string // part of the message
	// Since and Until are bounds of the time at which actions ended.
	Since, Until *time.Time
	// Before and After are the place beside which the page lies; at most one is given. Without them it is the newest.
	Before, After *LogPlace
	// Limit is how many lines are enough; MaxPage when 0. Since actions are whole, a page can have more.
	Limit int
}

// LogPlace is a place in the log of an environment: that of an action which ended then. Without an ID, it is the
// beginning of that moment.
type LogPlace struct {
	Ended time.Time
	ID    intent.ActionID
}

// String returns the place as ParseLogPlace reads it.
func (p LogPlace) String() string {
	return p.Ended.UTC().Format(time.RFC3339Nano) + "," + p.ID.String()
}

// ParseLogPlace reads a place: a time, or a time, a comma and the id of an action.
func ParseLogPlace(s string) (p LogPlace, err error) {
	at, id, has := strings.Cut(s, ",")
	if p.Ended, err = ParseTime(at); err == nil && has {
		p.ID, err = uuid.Parse(id)
	}
	if err != nil {
		return p, invalidList("%q is not a place in the log: want a time, or what a page of it said", s)
	}
	return p, nil
}

// LogPage is a part of the log.
type LogPage struct {
	// Actions are in the order in which they ended, with those of their lines that match.
	Actions []intent.Action
	Lines   int
	// Earlier and Later are where the log goes on; nil at its beginning and at its end. Newest is where to look for
	// what is recorded after this page was read; nil: ask for the newest page again.
	Earlier, Later, Newest *LogPlace
	// Looked is set when the page ends because it looked at many actions, not because it is full.
	Looked bool
}

type loggedRow struct {
	actionRow
	Look int
}

// Log returns a page of the log of an environment.
func (s *Store) Log(ctx context.Context, env intent.EnvironmentID, q LogQuery) (p LogPage, err error) {
	l, err := newLogSearch(env, q)
	if err != nil {
		return p, err
	}
	err = s.read(ctx, "store.Log", func(db querier) error { return l.run(ctx, db) })
	if err != nil {
		return p, err
	}
	return l.page(), nil
}

// logSearch collects a page.
type logSearch struct {
	q      LogQuery
	env    intent.EnvironmentID
	text   string // in lower case
	floor  int    // the severity of Level
	levels []string
	at     LogPlace  // how far the search came
	end    time.Time // nothing beyond it is of interest
	reach  int       // how many actions it may still look at

	found    []intent.Action
	lines    int
	bytes    int
	more     bool // there may be more beyond at
	looked   bool
	anything bool // it saw an action
}

func newLogSearch(env intent.EnvironmentID, q LogQuery) (*logSearch, error) {
	l := &logSearch{q: q, env: env, text: strings.ToLower(q.Text), reach: logReach}
	switch {
	case q.Limit < 0 || q.Limit > MaxPage:
		return nil, invalidList("the limit must be between 1 and %d, not %d", MaxPage, q.Limit)
	case q.Limit == 0:
		l.q.Limit = MaxPage
	}
	if q.Before != nil && q.After != nil {
		return nil, invalidList("a page lies after one place or before one, not both")
	}
	for _, text := range []string{q.Part, q.Agent, q.Type, q.Text, string(q.Kind)} {
		if _, _, err := Text.parse(text); err != nil {
			return nil, invalidList("%v", err)
		}
	}
	if q.Level != "" {
		_, floor, err := Level.parse(q.Level)
		if err != nil {
			return nil, invalidList("%v", err)
		}
		l.floor = floor.(int)
		if l.floor > defaultSeverity { // a level that is not known counts as INFO
			for _, name := range sortedKeys(severities) {
				if severities[name] >= l.floor {
					l.levels = append(l.levels, `%"level":"`+name+`"%`)
				}
			}
		}
	}
	newest, oldest := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	if q.After != nil {
		l.at, l.end = *q.After, newest
		if q.Since != nil && q.Since.After(l.at.Ended) {
			l.at = LogPlace{Ended: *q.Since}
		}
		if q.Until != nil {
			l.end = *q.Until
		}
		return l, nil
	}
	l.at, l.end = LogPlace{Ended: newest}, oldest
	if q.Before != nil {
		l.at = *q.Before
	}
	if q.Until != nil && q.Until.Before(l.at.Ended) {
		l.at = LogPlace{Ended: *q.Until}
	}
	if q.Since != nil {
		l.end = *q.Since
	}
	return l, nil
}

// run asks for actions until the page is full, the log ends, or the search has looked far enough.
func (l *logSearch) run(ctx context.Context, db querier) error {
	sql := statements.LogBefore
	switch one := !l.q.Resource.IsZero(); {
	case one && l.q.After != nil:
		sql = statements.LogAfterOf
	case one:
		sql = statements.LogBeforeOf
	case l.q.After != nil:
		sql = statements.LogAfter
	}
	for {
		ended, err := l.chunk(ctx, db, sql, logChunk)
		if err != nil || ended || l.more || l.looked {
			return err
		}
	}
}

// chunk asks once, and reports whether the log ends there. It sets more or looked when the page does.
func (l *logSearch) chunk(ctx context.Context, db querier, sql string, limit int) (ended bool, err error) {
	needle := ""
	if l.q.Text != "" { // as it stands in the stored messages
		quoted := jsontext.AppendString(nil, cleanText(l.q.Text))
		needle = string(quoted[1 : len(quoted)-1])
	}
	args := []any{l.env, l.at.Ended, l.at.ID, l.end, l.reach, string(l.q.Kind), l.q.Agent, l.q.Type, l.q.Part, needle,
		l.levels, limit}
	if !l.q.Resource.IsZero() {
		args = append(args, l.q.Resource.String())
	}
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return false, err
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByName[loggedRow])
	if err != nil {
		return false, err
	}
	look := 0
	for _, row := range got {
		action, err := row.value()
		if err != nil {
			return false, err
		}
		l.at, look, l.anything = LogPlace{*action.Finished, action.ID}, row.Look, true
		if l.add(action, len(row.Messages)); l.lines >= l.q.Limit || l.bytes >= logBytes {
			l.more = true
			return false, nil
		}
	}
	if look == l.reach {
		l.looked = true
		return false, nil
	}
	l.reach -= look
	return len(got) < limit, nil
}

// add keeps those lines of an action that match.
func (l *logSearch) add(a intent.Action, size int) {
	contains := func(text, part string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(part)) }
	if l.q.Kind != "" && a.Kind != l.q.Kind || !contains(a.Resource.Agent, l.q.Agent) ||
		!contains(a.Resource.Type, l.q.Type) || !contains(a.Resource.String(), l.q.Part) {
		return
	}
	a.Messages = slices.DeleteFunc(a.Messages, func(m intent.LogLine) bool {
		return l.floor > 0 && severityOf(m.Level) < l.floor || !strings.Contains(strings.ToLower(m.Message), l.text)
	})
	if len(a.Messages) == 0 {
		return
	}
	l.found = append(l.found, a)
	l.lines += len(a.Messages)
	l.bytes += size
}

// defaultSeverity is that of a level which is not known.
const defaultSeverity = 20

func severityOf(level string) int {
	if s, ok := severities[strings.ToUpper(level)]; ok {
		return s
	}
	return defaultSeverity
}

func (l *logSearch) page() LogPage {
	p := LogPage{Actions: l.found, Lines: l.lines, Looked: l.looked}
	reached := l.at
	if l.q.After != nil {
		p.Earlier = l.q.After
		if p.Newest = l.q.After; l.anything {
			p.Newest = &reached
		}
		if l.more || l.looked {
			p.Later = &reached
		}
		return p
	}
	slices.Reverse(p.Actions)
	if l.more || l.looked {
		p.Earlier = &reached
	}
	switch {
	case l.q.Before != nil:
		// The place itself belongs to the page after it.
		p.Later = &LogPlace{l.q.Before.Ended.Add(-time.Microsecond), last}
		p.Newest = p.Later
		if l.q.Before.ID != uuid.Nil {
			p.Later.Ended, p.Later.ID = l.q.Before.Ended, before(l.q.Before.ID)
		}
	case len(p.Actions) > 0:
		newest := p.Actions[len(p.Actions)-1]
		p.Newest = &LogPlace{*newest.Finished, newest.ID}
	case l.looked:
		p.Newest = &reached
	}
	return p
}

// last is the greatest id.
var last = uuid.Max

// before returns the id before another one.
func before(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}
