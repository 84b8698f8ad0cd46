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

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/servertest"
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

// until reads messages up to the first that is wanted, and returns all that it read.
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
			l.t.Fatalf("none of %d messages is the one that was waited for", len(all))
		}
	}
}

func fragmentWith(id, text string) func(message) bool {
	return func(m message) bool {
		return m.event == "fragment" && strings.Contains(m.data[:min(len(m.data), 200)], `id="`+id+`"`) &&
			strings.Contains(m.data, text)
	}
}

// live returns a server with a history, and a console of it that is served over HTTP and updates its pages at once.
func live(t *testing.T, change ...func(*Config)) (*servertest.Rich, *httptest.Server) {
	t.Helper()
	r, h := rich(t, append([]func(*Config){func(cfg *Config) { cfg.Pace = time.Millisecond }}, change...)...)
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return r, server
}

// moved publishes that something of production moved.
func moved(r *servertest.Rich, topic bus.Topic) {
	r.Bus.Publish(bus.Event{Environment: r.Production.ID, Topic: topic})
}

// installing returns the stage of the running compile that installs modules.
func installing(t *testing.T, r *servertest.Rich) intent.CompileID {
	t.Helper()
	_, stages, err := r.Store.Compile(t.Context(), r.Running)
	must(t, err)
	last := stages[len(stages)-1]
	if last.Name != intent.StageInstall || last.Completed != nil {
		t.Fatalf("the running compile is at %s", last.Name)
	}
	return last.ID
}

// A stream of a running compile begins with the whole page, and goes on with the steps that move, in their order, to
// the end of the run.
func TestARunIsWatchedToItsEnd(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	r, server := live(t)
	ctx, stage := t.Context(), installing(t, r)
	l := listen(t, server, "/e/"+r.Production.ID.String()+"/runs/"+r.Running.String()+"?live=1")
	first := l.until(fragmentWith("step-deployed", "not yet"))
	if len(first) < 10 || !strings.Contains(first[0].data, `id="run-head"`) {
		t.Fatalf("the stream does not begin with the whole page: %d messages", len(first))
	}
	must(t, r.Store.AppendStage(ctx, stage, "<b>Prepared 3 packages</b>\n", ""))
	moved(r, bus.Compile)
	second := l.until(fragmentWith("step-installed", "Prepared 3 packages"))
	if !strings.Contains(second[len(second)-1].data, "&lt;b&gt;Prepared") {
		t.Error("output became markup")
	}
	for _, m := range second {
		if strings.Contains(m.data, `id="step-fetched"`) {
			t.Error("a step that did not move was sent again")
		}
	}
	must(t, r.Store.FinishStage(ctx, stage, "uv pip install -r requirements.txt", 0, r.Now()))
	must(t, r.Store.StartStage(ctx, intent.Stage{
		ID: uuid.New(), Compile: r.Running, Name: intent.StageCompile, Started: r.Now(),
	}))
	moved(r, bus.Compile)
	third := l.until(fragmentWith("step-compiled", "running"))
	if done := fragmentWith("step-installed", "done"); !done(third[0]) {
		t.Errorf("the step before does not come first: %v", third[0])
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

// A burst of events becomes one update; events of other environments become none.
func TestBurstsBecomeOneUpdate(t *testing.T) {
	r, server := live(t, func(c *Config) { c.Pace = 50 * time.Millisecond })
	l := listen(t, server, "/e/"+r.Production.ID.String()+"?live=1")
	l.until(fragmentWith("latest", "running"))
	run, _, err := r.Store.Compile(t.Context(), r.Running)
	must(t, err)
	for n := range 500 {
		run.Revision.Subject = "Subject " + strconv.Itoa(n)
		must(t, r.Store.SetCompileRevision(t.Context(), r.Running, *run.Revision))
		moved(r, bus.Compile)
		r.Bus.Publish(bus.Event{Environment: r.Staging.ID, Topic: bus.Compile})
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

// A browser that reconnects gets the whole page again, whatever it had.
func TestReconnectSendsEverything(t *testing.T) {
	r, server := live(t)
	path := "/e/" + r.Production.ID.String() + "/agents?live=1"
	l := listen(t, server, path)
	l.until(fragmentWith("agentlist", "web01"))
	l.cancel()
	must(t, r.Control.PauseAgent(t.Context(), r.Production.ID, "web01", true))
	listen(t, server, path).until(fragmentWith("agentlist", "Unpause<span class=\"hidden\"> web01"))
}

// A quiet stream sends heartbeats, and streams above the limit are refused.
func TestStreamsAreBounded(t *testing.T) {
	_, server := live(t, func(c *Config) { c.Heartbeat = 5 * time.Millisecond; c.MaxStreams = 1 })
	l := listen(t, server, "/?live=1")
	l.until(func(m message) bool { return m.comment })
	if second := listen(t, server, "/?live=1"); second.code != http.StatusServiceUnavailable {
		t.Errorf("a second stream: %d", second.code)
	}
}

// The stream of a page whose subject is deleted tells the browser so.
func TestStreamOfADeletedEnvironment(t *testing.T) {
	r, server := live(t)
	l := listen(t, server, "/e/"+r.Sandbox.ID.String()+"?live=1")
	l.until(fragmentWith("summary", ""))
	must(t, r.Control.DeleteEnvironment(t.Context(), r.Sandbox.ID))
	l.until(func(m message) bool { return m.event == "gone" })
}
