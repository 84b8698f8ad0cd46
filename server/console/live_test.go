package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/api/apitest"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
)

// message is one message of a stream.
type message struct {
	event, id, data string
	comment         bool
}

// listener reads the stream of a page.
type listener struct {
	t        *testing.T
	messages chan message
	cancel   context.CancelFunc
	code     int
}

func listen(t *testing.T, server *httptest.Server, path string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{t: t, messages: make(chan message, 1000), cancel: cancel, code: resp.StatusCode}
	go func() {
		defer close(l.messages)
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 4<<20)
		var m message
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case lines.Text() == "":
				if m.event != "" || m.comment {
					l.messages <- m
				}
				m = message{}
			case strings.HasPrefix(lines.Text(), ":"):
				m.comment = true
			case field == "event":
				m.event = value
			case field == "id":
				m.id = value
			case field == "data":
				if m.data != "" {
					m.data += "\n"
				}
				m.data += value
			}
		}
	}()
	t.Cleanup(cancel)
	return l
}

// until reads messages up to one that is wanted, and gives all it read.
func (l *listener) until(wanted func(message) bool) (all []message) {
	l.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case m, ok := <-l.messages:
			if !ok {
				l.t.Fatalf("the stream ended after %d messages", len(all))
			}
			all = append(all, m)
			if wanted(m) {
				return all
			}
		case <-deadline:
			l.t.Fatalf("what was waited for never came; %d messages did", len(all))
		}
	}
}

func fragmentWith(id, text string) func(message) bool {
	return func(m message) bool {
		return m.event == "fragment" && strings.Contains(m.data[:min(len(m.data), 200)], `id="`+id+`"`) &&
			strings.Contains(m.data, text)
	}
}

func serve(t *testing.T, c Control, change ...func(*Config)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(
		newConsole(t, c, append([]func(*Config){func(cfg *Config) { cfg.Pace = time.Millisecond }}, change...)...),
	)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// runIn finds a run to change.
func runIn(r *apitest.Rich) *apitest.Run {
	for i := range r.Production.Runs {
		if r.Production.Runs[i].ID == r.Running {
			return &r.Production.Runs[i]
		}
	}
	panic("no running compile")
}

// A run is watched from the middle to its end: first everything as it is,
// then only the steps that move, in the order in which they do.
func TestARunIsWatchedToItsEnd(t *testing.T) {
	r := apitest.NewRich(present)
	server := serve(t, r)
	l := listen(t, server, "/e/"+r.Production.ID.String()+"/runs/"+r.Running.String()+"?live=1")
	first := l.until(fragmentWith("step-deployed", "not yet"))
	if len(first) < 10 || !strings.Contains(first[0].data, `id="run-head"`) {
		t.Fatalf("a stream begins with the whole page: %d messages", len(first))
	}
	moved := bus.Event{Environment: r.Production.ID, Topic: bus.Compile, ID: r.Running.String()}
	r.Do(func() {
		stage := &runIn(r).Stages[3]
		stage.Output += "<b>Prepared 3 packages</b>\n"
	}, moved)
	second := l.until(fragmentWith("step-installed", "Prepared 3 packages"))
	if !strings.Contains(second[len(second)-1].data, "&lt;b&gt;Prepared") {
		t.Error("output became markup")
	}
	for _, m := range second {
		if strings.Contains(m.data, `id="step-fetched"`) {
			t.Error("a step that did not move was sent again")
		}
	}
	r.Do(func() {
		run := runIn(r)
		run.Stages[3].Completed, run.Stages[3].ReturnCode = new(present), new(0)
		run.Stages = append(
			run.Stages,
			intent.Stage{ID: r.Good, Name: intent.StageCompile, Command: "ordain compile", Started: present},
		)
	}, moved)
	third := l.until(fragmentWith("step-compiled", "running"))
	if done := fragmentWith("step-installed", "done"); !done(third[0]) {
		t.Errorf("the step before comes first: %v", third[0])
	}
	last := 0
	for _, m := range append(append(first, second...), third...) {
		n, err := strconv.Atoi(m.id)
		if err != nil || n != last+1 {
			t.Fatalf("message %q after %d", m.id, last)
		}
		last = n
	}
}

// A burst of events is one update, and events of other environments are none.
func TestBurstsAreMergedAndStrangersIgnored(t *testing.T) {
	r := apitest.NewRich(present)
	server := serve(t, r, func(c *Config) { c.Pace = 50 * time.Millisecond })
	l := listen(t, server, "/e/"+r.Production.ID.String()+"?live=1")
	l.until(fragmentWith("latest", "running"))
	for n := range 500 {
		r.Do(
			func() { runIn(r).Revision.Subject = "Subject " + strconv.Itoa(n) },
			bus.Event{Environment: r.Production.ID, Topic: bus.Compile},
		)
		r.Do(func() {}, bus.Event{Environment: r.Staging.ID, Topic: bus.Compile})
	}
	updates := 0
	for _, m := range l.until(fragmentWith("latest", "Subject 499")) {
		if strings.Contains(m.data, `id="latest"`) {
			updates++
		}
	}
	if updates > 50 {
		t.Errorf("500 events became %d updates", updates)
	}
}

// A browser that comes back gets everything again, whatever it had.
func TestAReconnectSendsEverything(t *testing.T) {
	r := apitest.NewRich(present)
	server := serve(t, r)
	path := "/e/" + r.Production.ID.String() + "/agents?live=1"
	l := listen(t, server, path)
	l.until(fragmentWith("agentlist", "web01"))
	l.cancel()
	r.Do(func() { r.Production.AgentList[0].Paused = true })
	listen(t, server, path).until(fragmentWith("agentlist", "Unpause<span class=\"hidden\"> web01"))
}

// A quiet stream says that it lives; too many streams are refused; a page
// that is gone says so.
func TestStreamsAreBounded(t *testing.T) {
	r := apitest.NewRich(present)
	server := serve(t, r, func(c *Config) { c.Heartbeat = 5 * time.Millisecond; c.MaxStreams = 1 })
	l := listen(t, server, "/?live=1")
	l.until(func(m message) bool { return m.comment })
	if second := listen(t, server, "/?live=1"); second.code != http.StatusServiceUnavailable {
		t.Errorf("a second stream: %d", second.code)
	}
	other := serve(t, r)
	gone := listen(t, other, "/e/"+r.Staging.ID.String()+"?live=1")
	gone.until(fragmentWith("summary", ""))
	if err := r.DeleteEnvironment(t.Context(), r.Staging.ID); err != nil {
		t.Fatal(err)
	}
	gone.until(func(m message) bool { return m.event == "gone" })
}
