package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

// selfKnowledge is what the process knows of itself, for the page about the server.
type selfKnowledge struct {
	disk       func() (free, size int64, err error)
	separation string
	separated  bool
	began      time.Time
}

// statusPage says how the server is: what is wrong first, then what it consists of and what it has to do. Everybody who
// is logged in may see whether it is well; numbers and addresses are for those who may see its processes.
type statusPage struct {
	frame
	Report statusReport
}

type statusReport struct {
	State    state
	Sentence string
	Findings []finding
	Hidden   bool // there are findings that the reader may not see
	Began    time.Time
	Database string // its version
	// Detail is what only those see who may see the processes of the server.
	Detail *statusDetail
}

// finding is something that needs a person, and what to do about it.
type finding struct {
	State state
	What  string
	Do    string
	Links []findingLink
}

type findingLink struct{ Text, URL string }

type statusDetail struct {
	Processes []serverProcess
	Groups    []factGroup
}

// serverProcess is one of the processes that share the database.
type serverProcess struct {
	Name, Roles, Version, Address string
	Started, Seen                 time.Time
	Owned, Wanted                 int
	Here                          bool // it renders the page
}

type factGroup struct {
	Title string
	Facts []statusFact
}

type statusFact struct {
	Name, Value string
	Since       *time.Time // what the value says has been so since then
}

// serverReading is all that the page is made of.
type serverReading struct {
	now       time.Time
	answered  time.Duration // how long the database took to answer
	database  store.ServerInfo
	processes []intent.Replica
	here      uuid.UUID
	program   string
	load      intent.ServerLoad
	recorded  intent.ProcessCounts
	self      selfKnowledge
	free      int64
	size      int64
	diskError bool
	streams   int
	streamCap int
	executors string
}

func (c *console) status(r *http.Request) (view, error) {
	f, err := c.frame(r, "Server status", "status", crumb{Text: "Server status"})
	if err != nil {
		return view{}, err
	}
	ctx := r.Context()
	reading, err := c.readServer(ctx)
	if err != nil {
		return view{}, err
	}
	findings := reading.findings()
	p := statusPage{frame: f, Report: statusReport{
		Hidden: len(findings) > 0, Began: c.self.began, Database: reading.database.Version,
	}}
	p.Report.State, p.Report.Sentence = verdict(findings)
	if access.Of(ctx).Decide(access.SeeReplicas, access.Target{}).Allowed {
		reading.executors = c.executorsText(ctx, f.Envs)
		p.Report.Findings, p.Report.Hidden, p.Report.Detail = findings, false, reading.detail()
	}
	return view{
		template: "status", data: p, pace: 5 * time.Second,
		fragments: []fragment{{"serverstatus", "serverstatus", p.Report}},
	}, nil
}

// countedEnvironments is up to how many environments the executors are counted: each measures folders for it.
const countedEnvironments = 20

func (c *console) readServer(ctx context.Context) (s serverReading, err error) {
	s = serverReading{
		now: c.now(), here: c.store.Replica(), program: c.program, self: c.self,
		streams: len(c.streams), streamCap: cap(c.streams),
	}
	begun := time.Now()
	if s.database, err = c.store.ServerInfo(ctx); err != nil {
		return s, err
	}
	s.answered = time.Since(begun)
	if s.processes, err = c.store.Replicas(ctx, processSeen); err != nil {
		return s, err
	}
	if s.load, err = c.store.ServerLoad(ctx); err != nil {
		return s, err
	}
	if s.recorded, err = c.store.CountProcesses(ctx, uuid.Nil); err != nil {
		return s, err
	}
	if c.self.disk != nil {
		s.free, s.size, err = c.self.disk()
		s.diskError = err != nil
	}
	return s, nil
}

// executorsText says how many executors this process has, and what they take.
func (c *console) executorsText(ctx context.Context, envs []envLink) string {
	if len(envs) > countedEnvironments {
		return "listed by each environment"
	}
	var n int
	var memory, disk int64
	for _, e := range envs {
		x, err := c.control.Executors(ctx, e.ID)
		if err != nil {
			continue // the environment was deleted meanwhile
		}
		n, disk = n+len(x.Processes), disk+x.Disk
		for _, p := range x.Processes {
			memory += p.RSS
		}
	}
	return plural(n, "executor") + ", " + bytesText(memory) + " of memory, " + bytesText(disk) + " on disk"
}

// verdict is the state of the server in one sentence.
func verdict(findings []finding) (state, string) {
	bad := 0
	for _, f := range findings {
		if f.State == failed {
			bad++
		}
	}
	switch {
	case bad > 0:
		return failed, plural(bad, "thing") + " must be mended."
	case len(findings) > 0:
		return toLookAt, plural(len(findings), "thing") + " to look at; the server works."
	}
	return state{"intended", "well"}, "The server works, and nothing needs a person."
}

// toLookAt is the state of what works, though not as it should.
var toLookAt = state{"differs", "look at this"}

// detail lists what the server consists of and what it has to do.
func (s serverReading) detail() *statusDetail {
	d := &statusDetail{}
	for _, p := range s.processes {
		address := p.Address
		if address == "" {
			address = "does not listen"
		}
		d.Processes = append(d.Processes, serverProcess{
			Name: p.Name, Roles: rolesText(p.Roles), Version: p.Version, Address: address, Started: p.Started,
			Seen: p.Seen, Owned: p.Owned, Wanted: p.Wanted, Here: p.ID == s.here,
		})
	}
	l := s.load
	d.Groups = []factGroup{
		{"To do", []statusFact{
			{"Environments", count(l.Environments) + ", " + count(l.Halted) + " of them halted", nil},
			{"Compiles", count(l.CompilesRunning) + " running, " +
				count(l.CompilesWaiting) + " waiting", l.CompileWaitsSince},
			{"Resources", count(l.ResourcesDeploying) + " deploying, " + count(l.ResourcesWaiting) +
				" to be deployed", nil},
			{"Messages to forges", count(l.MessagesWaiting) + " waiting, " + count(s.deadMessages()) + " given up",
				l.MessageWaitsSince},
			{"Recorded work", count(s.recorded.Running) + " running, " + count(s.recorded.Waiting) + " waiting, " +
				count(s.recorded.Dead) + " dead", nil},
		}},
		{"This process", []statusFact{
			{"Version", s.program, nil},
			{"Executors", s.executors, nil},
			{"Live pages", count(s.streams) + " of at most " + count(s.streamCap), nil},
			{"Disk with its data", s.diskText(), nil},
			{"Environments are kept apart", s.separationText(), nil},
		}},
		{"Database", []statusFact{
			{"Version", "PostgreSQL " + s.database.Version, nil},
			{"Place", s.database.Database + " on " + s.database.Host, nil},
			{"Answered in", duration(s.answered), nil},
			{"Connections", count(s.database.OpenConnections-s.database.IdleConnections) + " in use, " +
				count(s.database.IdleConnections) + " idle, at most " + count(s.database.MaxConnections), nil},
			{"Requests waited for one", duration(s.database.Waited) + " in all since the start", nil},
		}},
	}
	return d
}

func rolesText(roles []string) string {
	if len(roles) == 0 {
		roles = allRoles
	}
	return strings.Join(roles, ", ")
}

// The roles of processes that the page asks for, and all roles, which a process has that names none.
const roleProcess, roleAgent = "process", "agent"

var allRoles = []string{"api", roleProcess, roleAgent}

// processSeen is for how long a process is listed after its last sign.
const processSeen = 10 * time.Second

func (s serverReading) deadMessages() (n int) {
	for _, d := range s.load.DeadMessages {
		n += d.N
	}
	return n
}

func (s serverReading) diskText() string {
	switch {
	case s.diskError:
		return "cannot be read"
	case s.size == 0:
		return "not known"
	}
	return bytesText(s.free) + " free of " + bytesText(s.size)
}

func (s serverReading) separationText() string {
	if s.self.separation == "" {
		return "not known"
	}
	return s.self.separation
}
