package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// logged returns the deployment of a resource that ended some milliseconds after epoch with these lines, each of which
// begins with its level.
func logged(env intent.EnvironmentID, agent string, n, ended int, lines ...string) intent.FinishedAction {
	id := intent.ResourceID{Type: "fs::File", Agent: agent, Attribute: "path", Value: fmt.Sprintf("/f%d", n)}
	begin, end := epoch.Add(time.Duration(ended-5)*time.Millisecond), epoch.Add(time.Duration(ended)*time.Millisecond)
	a := intent.Action{
		ID: uuid.New(), Environment: env, Kind: intent.ActionDeploy, Resource: id, Version: 1, Started: begin,
		Finished: &end, Status: intent.StatusDeployed,
	}
	for _, line := range lines {
		var level, text string
		_, err := fmt.Sscanf(line, "%s %q", &level, &text)
		if err != nil {
			panic(err)
		}
		a.Messages = append(a.Messages, intent.LogLine{Level: level, Message: text, Time: begin})
	}
	return intent.FinishedAction{Action: a, State: intent.ResourceState{
		ID: id, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
	}}
}

// texts returns the messages of a page.
func texts(p store.LogPage) (out []string) {
	for _, a := range p.Actions {
		for _, m := range a.Messages {
			out = append(out, m.Message)
		}
	}
	return out
}

// A reader leafs through the whole log, back to its beginning and forward again, and sees every line once in the order
// in which actions ended: also of actions that ended in the same moment, and of those that took long.
func TestTheLogIsReadInTheOrderInWhichActionsEnded(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	var done []intent.FinishedAction
	for i := range 40 {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		done = append(done, logged(env, "web01", i, 100+i/4, fmt.Sprintf("INFO %q", a), fmt.Sprintf("INFO %q", b)))
	}
	done[39].Action.Started = epoch.Add(-time.Hour)
	done = append(done, logged(env, "web01", 99, 300)) // it wrote nothing
	slices.SortStableFunc(done[:40], func(x, y intent.FinishedAction) int {
		if c := x.Action.Finished.Compare(*y.Action.Finished); c != 0 {
			return c
		}
		return slices.Compare(x.Action.ID[:], y.Action.ID[:])
	})
	var want []string
	for _, d := range done {
		for _, m := range d.Action.Messages {
			want = append(want, m.Message)
		}
	}
	must(t, s.FinishActions(ctx, env, done))
	must(t, s.FinishActions(ctx, newEnvironment(t, s), []intent.FinishedAction{
		logged(env, "web01", 1, 110, `INFO "of another environment"`),
	}))

	var back []string
	page := get(s.Log(ctx, env, store.LogQuery{Limit: 7}))(t)
	if page.Later != nil {
		t.Error("there is something later than the newest page")
	}
	newest := *page.Newest
	for {
		if page.Lines != len(texts(page)) || page.Lines > 8 {
			t.Fatalf("a page of %d lines says %d", len(texts(page)), page.Lines)
		}
		back = append(texts(page), back...)
		if page.Earlier == nil {
			break
		}
		page = get(s.Log(ctx, env, store.LogQuery{Limit: 7, Before: page.Earlier}))(t)
	}
	if !slices.Equal(back, want) {
		t.Errorf("backward: %v", back)
	}
	forward := texts(page)
	for page.Later != nil {
		page = get(s.Log(ctx, env, store.LogQuery{Limit: 7, After: page.Later}))(t)
		forward = append(forward, texts(page)...)
	}
	if !slices.Equal(forward, want) {
		t.Errorf("forward: %v", forward)
	}

	// What ends later is what follows.
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{logged(env, "web01", 5, 400, `INFO "news"`)}))
	page = get(s.Log(ctx, env, store.LogQuery{After: &newest}))(t)
	if !slices.Equal(texts(page), []string{"news"}) || page.Later != nil {
		t.Errorf("after the newest: %v, %v", texts(page), page.Later)
	}
	after := *page.Newest
	page = get(s.Log(ctx, env, store.LogQuery{After: &after}))(t)
	if len(page.Actions) != 0 || *page.Newest != after {
		t.Error("nothing new is not nothing new")
	}
	place, err := store.ParseLogPlace(after.String())
	if err != nil || place != after {
		t.Errorf("%v is read as %v, %v", after, place, err)
	}
}

// Each filter finds what it is for, and only that; quotes, backslashes and letters beyond ASCII are found in messages
// as people see them, not as they are stored.
func TestTheLogIsFiltered(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	web := logged(env, "web01", 1, 10, `INFO "start"`, `ERROR "cannot open \"C:\\tmp\": Größe"`)
	db := logged(env, "db01", 2, 20, `DEBUG "start"`, `WARNING "say \"level\":\"CRITICAL\" aloud"`)
	facts := logged(env, "web02", 3, 30, `NOTICE "its uptime"`)
	facts.Action.Kind = intent.ActionGetFact
	facts.Action.Status = ""
	must(t, s.FinishActions(ctx, env, []intent.FinishedAction{web, db, facts}))
	at := func(ms int) *time.Time { t := epoch.Add(time.Duration(ms) * time.Millisecond); return &t }
	const failed, said = `cannot open "C:\tmp": Größe`, `say "level":"CRITICAL" aloud`
	for name, c := range map[string]struct {
		q    store.LogQuery
		want []string
	}{
		"all":            {store.LogQuery{}, []string{"start", failed, "start", said, "its uptime"}},
		"resource":       {store.LogQuery{Resource: db.Action.Resource}, []string{"start", said}},
		"other resource": {store.LogQuery{Resource: intent.ResourceID{Type: "a::B", Agent: "c", Attribute: "d"}}, nil},
		"part":           {store.LogQuery{Part: "=/F2"}, []string{"start", said}},
		"agent":          {store.LogQuery{Agent: "WEB"}, []string{"start", failed, "its uptime"}},
		"type":           {store.LogQuery{Type: "file", Agent: "db"}, []string{"start", said}},
		"not the type":   {store.LogQuery{Type: "web01"}, nil},
		"kind":           {store.LogQuery{Kind: intent.ActionGetFact}, []string{"its uptime"}},
		"warnings":       {store.LogQuery{Level: "warning"}, []string{failed, said}},
		"critical":       {store.LogQuery{Level: "CRITICAL"}, nil},
		"info":           {store.LogQuery{Level: "INFO"}, []string{"start", failed, said, "its uptime"}},
		"text":           {store.LogQuery{Text: `OPEN "c:\TMP": Grö`}, []string{failed}},
		"no pattern":     {store.LogQuery{Text: "%"}, nil},
		"since":          {store.LogQuery{Since: at(20)}, []string{"start", said, "its uptime"}},
		"until":          {store.LogQuery{Until: at(20)}, []string{"start", failed}},
		"both":           {store.LogQuery{Since: at(15), Until: at(25)}, []string{"start", said}},
		"after a time": {
			store.LogQuery{After: &store.LogPlace{Ended: *at(20)}, Until: at(25)}, []string{"start", said},
		},
	} {
		if got := texts(get(s.Log(ctx, env, c.q))(t)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, q := range []store.LogQuery{
		{Level: "loud"}, {Limit: 1001}, {Limit: -1}, {Text: "a\x00b"},
		{Before: &store.LogPlace{}, After: &store.LogPlace{}},
	} {
		if _, err := s.Log(ctx, env, q); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := store.ParseLogPlace("yesterday"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// In a log of 50,000 actions of which one matches, a page looks at a part, says so, and the pages before it find the
// one.
func TestASearchOfALongLogEndsAndGoesOn(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	const actions, batch = 50_000, 5000
	for from := 0; from < actions; from += batch {
		var done []intent.FinishedAction
		for i := from; i < from+batch; i++ {
			line := `INFO "nothing changed"`
			if i == 7 {
				line = `ERROR "the disk is full"`
			}
			done = append(done, logged(env, "web01", i, i, line))
		}
		must(t, s.FinishActions(ctx, env, done))
	}
	for name, q := range map[string]store.LogQuery{"text": {Text: "disk"}, "level": {Level: "ERROR"}} {
		pages, found := 0, []string(nil)
		for page := (store.LogPage{}); ; pages++ {
			page = get(s.Log(ctx, env, q))(t)
			found = append(found, texts(page)...)
			if page.Earlier == nil {
				break
			}
			if !page.Looked || len(page.Actions) > 0 {
				t.Errorf("%s: page %d found %v", name, pages, texts(page))
			}
			q.Before = page.Earlier
		}
		if pages != 2 || !slices.Equal(found, []string{"the disk is full"}) {
			t.Errorf("%s: found %v after %d pages", name, found, pages)
		}
	}
}
