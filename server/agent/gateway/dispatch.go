package gateway

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// pingSlots is into how many turns the links are divided, so that pings are spread over the time between two.
const pingSlots = 10

func identity(c store.AgentConnection) ca.Identity {
	return ca.Identity{Environment: c.Environment, Agent: c.Name}
}

// register makes a link the one of its agent. It reports false when a newer one was faster, or the server stops.
func (g *Gateway) register(l *link) bool {
	g.mu.Lock()
	before := g.links[l.who.Identity]
	if g.draining || before != nil && before.number > l.number {
		g.mu.Unlock()
		return false
	}
	g.links[l.who.Identity] = l
	g.next = (g.next + 1) % pingSlots
	l.slot = g.next
	g.slots[l.slot][l] = struct{}{}
	if before != nil {
		delete(g.slots[before.slot], before)
	}
	g.dirty[l] = struct{}{}
	g.mu.Unlock()
	if before != nil {
		g.replaced(before, "from "+l.address)
	}
	g.nudge()
	g.publish(l.who.Identity)
	return true
}

// replaced ends a link whose agent has a newer connection. An agent that lost its connection does the same, so that it
// is worth a word only when the old one was alive.
func (g *Gateway) replaced(l *link, by string) {
	l.bye(protocol.Replaced, "the agent has connected again, "+by, 0)
	if time.Since(time.Unix(0, l.heard.Load())) < 2*g.c.Ping {
		g.problem(l.who.Identity, "another connection "+by+" took over while the one from "+l.address+
			" was alive. When that happens in turns, two machines have the same certificate: revoke the agent, "+
			"and let each machine join under a name of its own")
	}
}

// unregister forgets a link that has ended.
func (g *Gateway) unregister(l *link) {
	g.mu.Lock()
	if g.links[l.who.Identity] == l {
		delete(g.links, l.who.Identity)
	}
	delete(g.slots[l.slot], l)
	delete(g.dirty, l)
	g.mu.Unlock()
	l.mu.Lock()
	slow := l.slow
	l.mu.Unlock()
	if slow {
		g.problem(l.who.Identity, "it was disconnected, because it did not read what was sent to it in time")
	}
	g.depart(l)
}

// depart records that a connection has ended.
func (g *Gateway) depart(l *link) {
	select {
	case g.gone <- l.connection():
	case <-g.work.Done():
	}
}

// recordGone records connections that have ended, many at a time.
func (g *Gateway) recordGone(ctx context.Context) {
	for {
		var batch []store.AgentConnection
		select {
		case c := <-g.gone:
			batch = append(batch, c)
		case <-ctx.Done():
		}
	more:
		for len(batch) < claimsAtOnce {
			select {
			case c := <-g.gone:
				batch = append(batch, c)
			default:
				break more
			}
		}
		if len(batch) > 0 {
			write, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			err := g.c.Store.DisconnectAgents(write, batch)
			cancel()
			if err != nil { // reconcile does it later
				g.c.Logger.Warn(
					"it cannot be recorded that agents have disconnected",
					"agents",
					len(batch),
					"error",
					err,
				)
			}
			for _, c := range batch {
				g.publish(identity(c))
			}
		}
		if ctx.Err() != nil && len(batch) < claimsAtOnce {
			return
		}
	}
}

// look makes the dispatcher look for commands for a link.
func (g *Gateway) look(l *link) {
	g.mu.Lock()
	g.dirty[l] = struct{}{}
	g.mu.Unlock()
	g.nudge()
}

func (g *Gateway) nudge() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// listenToBus looks for commands for the agents of events.
func (g *Gateway) listenToBus(ctx context.Context) {
	events := g.c.Bus.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Command })
	defer events.Close()
	for {
		select {
		case e := <-events.Events():
			g.mu.Lock()
			if e.Topic == bus.Lagged {
				for _, l := range g.links {
					g.dirty[l] = struct{}{}
				}
			} else if l := g.links[ca.Identity{Environment: e.Environment, Agent: e.ID}]; l != nil {
				g.dirty[l] = struct{}{}
			}
			dirty := len(g.dirty) > 0
			g.mu.Unlock()
			if dirty {
				g.nudge()
			}
		case <-ctx.Done():
			return
		}
	}
}

// dispatch claims commands for links that are dirty, and looks for others now and then.
func (g *Gateway) dispatch(ctx context.Context) {
	sweep := time.NewTicker(g.c.Sweep)
	defer sweep.Stop()
	for {
		select {
		case <-g.wake:
		case <-sweep.C:
			g.sweep(ctx)
		case <-ctx.Done():
			return
		}
		for links := g.takeDirty(); len(links) > 0; links = g.takeDirty() {
			g.claim(ctx, links)
		}
	}
}

// sweep finds the links for which the record has something.
func (g *Gateway) sweep(ctx context.Context) {
	waiting, err := g.c.Store.AgentsWithCommands(ctx)
	if err != nil {
		if ctx.Err() == nil {
			g.c.Logger.Warn("the record cannot be searched for commands", "error", err)
		}
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range waiting {
		if l := g.links[identity(c)]; l != nil {
			g.dirty[l] = struct{}{}
		}
	}
}

func (g *Gateway) takeDirty() (links []*link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.dirty {
		if len(links) == claimsAtOnce {
			break
		}
		delete(g.dirty, l)
		links = append(links, l)
	}
	return links
}

// maxQueued is how many bytes of commands wait in a link before it takes no more.
const maxQueued = protocol.MaxWaiting / 8

// claim gives links what the record has for them.
func (g *Gateway) claim(ctx context.Context, links []*link) {
	var connections, all []store.AgentConnection
	var room []int
	for _, l := range links {
		all = append(all, l.connection())
		l.mu.Lock()
		free := window - len(l.flight)
		if l.out.bytes > maxQueued {
			free = 0
		}
		l.more = free <= 0
		l.mu.Unlock()
		if free > 0 {
			connections, room = append(connections, l.connection()), append(room, free)
		}
	}
	if len(connections) > 0 {
		g.claimCommands(ctx, links, connections, room)
	}
	cancelled, err := g.c.Store.ClaimCancelledCommands(ctx, all)
	if err != nil {
		g.unclaim(ctx, links, err)
		return
	}
	for _, c := range cancelled {
		g.with(c.Environment, c.Agent, func(l *link) {
			l.post(protocol.CancelMessage{Type: protocol.Cancel, ID: c.ID.String()})
		})
	}
	g.check(ctx, all)
}

func (g *Gateway) claimCommands(
	ctx context.Context, links []*link, connections []store.AgentConnection, room []int,
) {
	claimed, err := g.c.Store.ClaimAgentCommands(ctx, connections, room)
	if err != nil {
		g.unclaim(ctx, links, err)
		return
	}
	by := map[ca.Identity][]store.ClaimedCommand{}
	for _, c := range claimed {
		who := ca.Identity{Environment: c.Environment, Agent: c.Agent}
		by[who] = append(by[who], c)
	}
	for i, c := range connections {
		commands := by[identity(c)]
		if len(commands) == 0 {
			continue
		}
		g.with(c.Environment, c.Name, func(l *link) {
			if l.number != c.Connection {
				return // the newer link claims them itself
			}
			sortBySeq(commands)
			l.mu.Lock()
			l.more = len(commands) >= room[i]
			l.mu.Unlock()
			l.give(commands)
		})
	}
}

// unclaim makes what a failed claim may have marked claimable again. It is tried until it succeeds.
func (g *Gateway) unclaim(ctx context.Context, links []*link, why error) {
	if ctx.Err() != nil {
		return
	}
	g.c.Logger.Warn("commands for agents cannot be read; the server keeps trying", "error", why)
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		var connections []store.AgentConnection
		got := []uuid.UUID{}
		for _, l := range links {
			connections = append(connections, l.connection())
			l.mu.Lock()
			for id := range l.flight {
				got = append(got, id)
			}
			l.mu.Unlock()
		}
		if g.c.Store.UnclaimAgentCommands(ctx, connections, got) == nil {
			break
		}
	}
	g.mu.Lock()
	for _, l := range links {
		if g.links[l.who.Identity] == l {
			g.dirty[l] = struct{}{}
		}
	}
	g.mu.Unlock()
	g.nudge()
}

// with calls f with the link of an agent, if there is one.
func (g *Gateway) with(env intent.EnvironmentID, agent string, f func(*link)) {
	g.mu.Lock()
	l := g.links[ca.Identity{Environment: env, Agent: agent}]
	g.mu.Unlock()
	if l != nil {
		f(l)
	}
}

// check ends links that the record says are not the newest of their agents, or whose agents may not connect any more.
func (g *Gateway) check(ctx context.Context, links []store.AgentConnection) {
	states, err := g.c.Store.LookAtAgents(ctx, links)
	if err != nil {
		return // the next look finds it
	}
	g.compare(states)
}

func (g *Gateway) compare(states []store.AgentConnection) {
	for _, s := range states {
		g.with(s.Environment, s.Name, func(l *link) {
			switch state := intent.RemoteState(s.State); {
			case state == intent.RemoteRevoked:
				l.bye(protocol.IsRevoked, "the agent was revoked; to connect again, it has to join with a new token", 0)
			case state == intent.RemoteRemoved:
				l.bye(protocol.IsRemoved, "the agent was removed", 0)
			case s.Connection > l.number:
				g.replaced(l, "at another server, or it joined again")
			}
		})
	}
}

// reconcile compares all links with the record now and then, because events get lost.
func (g *Gateway) reconcile(ctx context.Context) {
	tick := time.NewTicker(6 * g.c.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		recorded, err := g.c.Store.ConnectedAgents(ctx)
		if err != nil {
			continue
		}
		known := make(map[ca.Identity]bool, len(recorded))
		var stale []store.AgentConnection
		g.mu.Lock()
		for _, c := range recorded {
			known[identity(c)] = true
			if g.links[identity(c)] == nil {
				stale = append(stale, c)
			}
		}
		var doubtful []store.AgentConnection
		for who, l := range g.links {
			if !known[who] {
				doubtful = append(doubtful, l.connection())
			}
		}
		g.mu.Unlock()
		g.compare(recorded)
		if len(doubtful) > 0 {
			g.check(ctx, doubtful)
		}
		for _, c := range stale {
			select {
			case g.gone <- c: // an agent that connects just now has a greater number
			case <-ctx.Done():
			}
		}
	}
}

// ping pings the links, a tenth of them at a time, and ends those that did not answer for three rounds.
func (g *Gateway) ping(ctx context.Context) {
	tick := time.NewTicker(g.c.Ping / pingSlots)
	defer tick.Stop()
	for round := int64(0); ; round++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		slot := int(round % pingSlots)
		g.mu.Lock()
		links := make([]*link, 0, len(g.slots[slot]))
		for l := range g.slots[slot] {
			links = append(links, l)
		}
		g.mu.Unlock()
		data, err := protocol.Encode(protocol.PingMessage{Type: protocol.Ping, ID: round})
		if err != nil {
			return
		}
		now := time.Now()
		for _, l := range links {
			if now.Sub(time.Unix(0, l.heard.Load())) > 3*g.c.Ping {
				l.cut()
				continue
			}
			l.post(data)
			l.rotate(now)
		}
	}
}

// rotateEvery is the time between two requests to renew a certificate.
const rotateEvery = time.Hour

// rotate asks the agent to renew its certificate when a third of its lifetime is left.
func (l *link) rotate(now time.Time) {
	l.mu.Lock()
	due := l.who.Expires.Sub(now) < l.who.Expires.Sub(l.who.Made)/3 && now.Sub(l.asked) > rotateEvery
	if due {
		l.asked = now
	}
	l.mu.Unlock()
	if due {
		l.post(protocol.RotateMessage{Type: protocol.Rotate})
	}
}
