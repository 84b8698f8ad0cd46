package console

import (
	"slices"
	"strings"
	"time"
)

// From where on the page about the server says that something is wrong.
const (
	slowDatabase  = 500 * time.Millisecond
	longWait      = 15 * time.Minute // of a compile, or of a message to a forge
	unseenProcess = 6 * time.Second  // a process says every two seconds that it is there
)

// findings lists what needs a person, the worst first.
func (s serverReading) findings() []finding {
	out := slices.Concat(s.databaseFindings(), s.processFindings(), s.diskFindings(), s.workFindings())
	slices.SortStableFunc(out, func(a, b finding) int { return rankOf(a.State) - rankOf(b.State) })
	return out
}

func (s serverReading) databaseFindings() (out []finding) {
	if s.answered > slowDatabase {
		out = append(out, finding{
			State: toLookAt, What: "The database took " + duration(s.answered) + " to answer a short question.",
			Do: "Look at the load of its host and at the network between it and the server; pages and deployments " +
				"wait for it.",
		})
	}
	d := s.database
	if d.MaxConnections > 0 && d.OpenConnections-d.IdleConnections >= d.MaxConnections {
		out = append(out, finding{
			State: toLookAt, What: "All " + count(d.MaxConnections) + " connections to the database are in use.",
			Do: "If this stays, find the requests that take long; a further process with the role api has " +
				"connections of its own.",
		})
	}
	return out
}

// processFindings compares the processes that share the database with what is needed. When none has announced itself,
// as in the first moments, it says nothing.
func (s serverReading) processFindings() (out []finding) {
	versions := map[string]bool{}
	roles := map[string]bool{}
	for _, p := range s.processes {
		versions[p.Version] = true
		for _, role := range strings.Split(rolesText(p.Roles), ", ") {
			roles[role] = true
		}
		if unseen := s.latest().Sub(p.Seen); unseen > unseenProcess {
			out = append(out, finding{
				State: toLookAt, What: "The process " + p.Name + " has given no sign for " + duration(unseen) + ".",
				Do: "Look at its host and its log. Others take over its environments once it has been silent for " +
					"ten seconds.",
			})
		}
	}
	if len(s.processes) == 0 {
		return out
	}
	if !roles[roleProcess] {
		out = append(out, finding{
			State: failed, What: "No process of the server carries out work: nothing is compiled or deployed.",
			Do: "Start a process with the role process, and look in its log if it ends at once.",
		})
	}
	if !roles[roleAgent] && s.load.RemoteAgents > 0 {
		out = append(out, finding{
			State: toLookAt, What: "No process of the server talks to the " +
				plural(s.load.RemoteAgents, "remote agent") +
				" that joined.",
			Do: "Start a process with the role agent, where the address in their join tokens leads.",
		})
	}
	if len(versions) > 1 {
		out = append(out, finding{
			State: toLookAt, What: "The processes of the server have " + count(len(versions)) + " different versions.",
			Do: "This is so during an upgrade. Otherwise, install the same version on all hosts.",
		})
	}
	return out
}

// latest is when the process was seen that was seen last, by the clock of the database.
func (s serverReading) latest() (at time.Time) {
	for _, p := range s.processes {
		if p.Seen.After(at) {
			at = p.Seen
		}
	}
	return at
}

func (s serverReading) diskFindings() []finding {
	f := finding{
		Do: "Free space, or lower the options that keep virtual environments, logs and old versions, before " +
			"compiles and checkouts fail.",
	}
	switch {
	case s.diskError:
		return []finding{{
			State: toLookAt, What: "The free space of the disk with the server's data cannot be read.",
			Do: "Check that the folder of the option config.state-dir is there and can be read.",
		}}
	case s.size == 0 || s.free*10 > s.size:
		return nil
	case s.free*50 > s.size:
		f.State = toLookAt
	default:
		f.State = failed
	}
	f.What = "The disk with the server's data is nearly full: " + bytesText(s.free) + " of " +
		bytesText(s.size) + " are free."
	return []finding{f}
}

func (s serverReading) workFindings() (out []finding) {
	l := s.load
	if at := l.CompileWaitsSince; at != nil && s.now.Sub(*at) > longWait {
		out = append(out, finding{
			State: toLookAt, What: plural(l.CompilesWaiting, "compile") + " waiting, the first for " +
				duration(s.now.Sub(*at)) + ".",
			Do: "Look at the runs of the environments for one that does not end, and cancel it there.",
		})
	}
	if at := l.MessageWaitsSince; at != nil && s.now.Sub(*at) > longWait {
		out = append(out, finding{
			State: toLookAt,
			What: plural(l.MessagesWaiting, "message") + " to forges waiting, the first for " +
				duration(s.now.Sub(*at)) + ".",
			Do: "The pull requests of the environments say why the forge did not take them.",
		})
	}
	if n := s.deadMessages(); n > 0 {
		f := finding{
			State: toLookAt, What: plural(n, "message") + " could not be sent to a forge and will not be tried again.",
			Do: "Mend the token or the address in the settings of the environment, then send them again from there:",
		}
		for _, d := range l.DeadMessages {
			f.Links = append(f.Links, findingLink{d.Name, envURL(d.Environment) + "/pulls"})
		}
		out = append(out, f)
	}
	if s.recorded.Dead > 0 {
		out = append(out, finding{
			State: toLookAt, What: plural(s.recorded.Dead, "piece") + " of recorded work died.",
			Do: "Look at why, then retry or cancel:", Links: []findingLink{{"Processes", "/processes"}},
		})
	}
	if l.Unreachable > 0 {
		out = append(out, finding{
			State: toLookAt, What: plural(l.Unreachable, "target") + " cannot be reached.",
			Do: "The pages of agents say which and since when. A deployment tries each of them again from time to " +
				"time.",
		})
	}
	if s.streamCap > 0 && s.streams >= s.streamCap {
		out = append(out, finding{
			State: toLookAt, What: "The limit of live pages is reached: further pages show no news until they are " +
				"loaded again.",
			Do: "Close pages that nobody looks at, or start another process with the role api.",
		})
	}
	if s.self.separation != "" && !s.self.separated {
		out = append(out, finding{
			State: toLookAt, What: "Environments are not fully kept apart: " +
				strings.TrimPrefix(s.self.separation, "in part: ") + ".",
			Do: "The section on isolation of the server's documentation says what is needed.",
		})
	}
	return out
}
