package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
)

// well is a reading of a server that nothing is wrong with.
func well() serverReading {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	return serverReading{
		now: at, answered: time.Millisecond, database: store.ServerInfo{MaxConnections: 10, OpenConnections: 2},
		processes: []intent.Replica{{Name: "one", Version: "1", Seen: at}}, size: 100 << 30, free: 50 << 30,
		streamCap: 10, load: intent.ServerLoad{CompilesWaiting: 1, CompileWaitsSince: &at},
	}
}

// Each fault of a server gives one sentence, and what to do; a server without one is well.
func TestTheStatusSaysWhatIsWrong(t *testing.T) {
	if text := findingsText(well()); text != "" {
		t.Errorf("a server that is well: %s", text)
	}
	long := well().now.Add(-time.Hour)
	for want, spoil := range map[string]func(*serverReading){
		"The database took 2.0 s to answer": func(s *serverReading) { s.answered = 2 * time.Second },
		"All 10 connections":                func(s *serverReading) { s.database.OpenConnections = 10 },
		"carries out work":                  func(s *serverReading) { s.processes[0].Roles = []string{"api", "agent"} },
		"talks to the 1 remote agent": func(s *serverReading) {
			s.processes[0].Roles, s.load.RemoteAgents = []string{"api", "process"}, 1
		},
		"2 different versions": func(s *serverReading) {
			s.other(intent.Replica{Name: "two", Version: "2", Seen: s.now})
		},
		"process two has given no sign": func(s *serverReading) {
			s.other(intent.Replica{Name: "two", Version: "1", Seen: s.now.Add(-8e9)})
		},
		"nearly full: 5.0 GiB of 100 GiB":      func(s *serverReading) { s.free = 5 << 30 },
		"cannot be read":                       func(s *serverReading) { s.diskError = true },
		"1 compile waiting, the first for 1 h": func(s *serverReading) { s.load.CompileWaitsSince = &long },
		"3 messages to forges waiting": func(s *serverReading) {
			s.load.MessagesWaiting, s.load.MessageWaitsSince = 3, &long
		},
		"2 messages could not be sent": func(s *serverReading) {
			s.load.DeadMessages = []intent.DeadMessages{{Environment: uuid.New(), Name: "shop", N: 2}}
		},
		"1 piece of recorded work died": func(s *serverReading) { s.recorded.Dead = 1 },
		"4 targets cannot be reached":   func(s *serverReading) { s.load.Unreachable = 4 },
		"The limit of live pages":       func(s *serverReading) { s.streams = 10 },
		"not fully kept apart: off":     func(s *serverReading) { s.self.separation = "off" },
	} {
		s := well()
		spoil(&s)
		if text := findingsText(s); !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("want %q: %q", want, text)
		}
	}
	s := well()
	s.free, s.answered = 1<<30, time.Second
	if text := findingsText(s); !strings.HasPrefix(text, "failed The disk") {
		t.Errorf("the worst is not first: %s", text)
	}
}

func (s *serverReading) other(p intent.Replica) { s.processes = append(s.processes, p) }

func findingsText(s serverReading) string {
	var b strings.Builder
	for _, f := range s.findings() {
		b.WriteString(f.State.Word + " " + f.What + " " + f.Do + "\n")
	}
	return b.String()
}

// The server of a history has one dead process, and a disk whose folder is gone: its page says so, and lists what there
// is to do. A page of an environment leads there.
func TestTheStatusPage(t *testing.T) {
	r, h := rich(t, func(c *Config) {
		c.Disk = func() (int64, int64, error) { return 0, 0, errors.New("gone") }
		c.Separation, c.Separated = "off: all have the rights of the server", false
	})
	_, err := r.Store.Beat(t.Context(), intent.Replica{
		Name: "host-a", Roles: []string{"api"}, Version: "0.0.1", Address: "http://127.0.0.1:8888", Started: r.Now(),
	}, time.Minute)
	must(t, err)
	contains(t, get(t, h, "/status").Body.String(), "1 thing must be mended", "carries out work", "recorded work died",
		"cannot be read", "Environments are not fully kept apart", "host-a", "this one", "PostgreSQL",
		"3, 0 of them halted")
	contains(t, get(t, h, envURL(r.Production.ID)).Body.String(), `href="/status"`)
}
