package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// joinAgent records an agent with a certificate, and connects it.
func joinAgent(t *testing.T, s *store.Store, env intent.EnvironmentID, name string) store.AgentConnection {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	token := intent.JoinToken{
		ID: uuid.New(), Environment: env, Agent: name, Made: now, MadeBy: "test", Expires: now.Add(time.Hour),
	}
	must(t, s.AddJoinToken(ctx, token, "hash "+name))
	serial := uuid.NewString()
	_, _, err := s.JoinAgent(ctx, store.Joining{Token: token.ID, Hash: "hash " + name, From: "::1", At: now},
		func(intent.EnvironmentID, string) (store.AgentCertificate, error) {
			return store.AgentCertificate{Serial: serial, Made: now, Expires: now.Add(time.Hour)}, nil
		})
	must(t, err)
	n := get(s.ConnectAgent(ctx, env, name, serial, "test", intent.RemoteMachine{}))(t)
	return store.AgentConnection{Environment: env, Name: name, Connection: n}
}

func command(agent string) intent.NewAgentCommand {
	return intent.NewAgentCommand{
		ID: uuid.New(), Agent: agent, Action: "deploy", Sealed: []byte("sealed"), Within: time.Minute,
	}
}

// Commands are recorded, cancelled and finished by the owner of the environment alone: what a server does that owned it
// before is refused.
func TestOnlyTheOwnerCommandsAgents(t *testing.T) {
	t.Parallel()
	url, ctx := storetest.URL(t), t.Context()
	open := func() *store.Store {
		s := get(store.Open(ctx, store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
		t.Cleanup(s.Close)
		return s
	}
	a, b := open(), open()
	env := newEnvironment(t, a)
	joinAgent(t, a, env, "x")
	held := get(a.Own(ctx, env))(t)
	c := command("x")
	must(t, a.AddAgentCommands(ctx, env, []intent.NewAgentCommand{c}))
	held.Release()
	if held := get(b.Own(ctx, env))(t); held == nil {
		t.Fatal("nobody else owns it")
	}
	want(t, a.AddAgentCommands(ctx, env, []intent.NewAgentCommand{command("x")}), fault.Unavailable)
	_, err := a.CancelAgentCommands(ctx, env, []uuid.UUID{c.ID})
	want(t, err, fault.Unavailable)
	_, err = a.EndLateAgentCommands(ctx, env)
	want(t, err, fault.Unavailable)
	want(t, a.FinishAgentCommands(ctx, env, []uuid.UUID{c.ID}), fault.Unavailable)
	left := get(b.UnfinishedAgentCommands(ctx, env))(t)
	if len(left) != 1 || left[0].ID != c.ID || left[0].Seq != 1 {
		t.Errorf("the next owner finds %+v", left)
	}
	must(t, b.AddAgentCommands(ctx, env, []intent.NewAgentCommand{c})) // it is there already
	if left := get(b.UnfinishedAgentCommands(ctx, env))(t); len(left) != 1 {
		t.Errorf("the same command was recorded twice: %+v", left)
	}
	want(t, b.AddAgentCommands(ctx, env, []intent.NewAgentCommand{command("nobody")}), fault.NotFound)
}

// The newest connection of an agent gets its commands, in order and once; an answer counts once, and only when it comes
// from the agent to which the command was sent.
func TestClaimsAndAnswers(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	x, y := joinAgent(t, s, env, "x"), joinAgent(t, s, env, "y")
	first, second := command("x"), command("x")
	must(t, s.AddAgentCommands(ctx, env, []intent.NewAgentCommand{first, second}))
	answer := func(agent string, id uuid.UUID) []uuid.UUID {
		return get(s.RecordAgentAnswers(ctx, []store.NewAgentAnswer{
			{ID: id, Environment: env, Agent: agent, Status: "deployed", Sealed: []byte("answer")},
		}))(t)
	}
	if got := answer("x", first.ID); len(got) != 0 {
		t.Error("a command was answered before it was sent")
	}
	old := x
	old.Connection--
	if got := get(s.ClaimAgentCommands(ctx, []store.AgentConnection{old, y}, []int{10, 10}))(t); len(got) != 0 {
		t.Errorf("an old connection and another agent got %+v", got)
	}
	got := get(s.ClaimAgentCommands(ctx, []store.AgentConnection{x}, []int{1}))(t)
	if len(got) != 1 || got[0].ID != first.ID || string(got[0].Payload) != "sealed" || got[0].LeftMS < 50_000 {
		t.Fatalf("the first claim got %+v", got)
	}
	if waiting := get(s.AgentsWithCommands(ctx))(t); len(waiting) != 1 || waiting[0] != x {
		t.Errorf("the sweep finds %+v", waiting)
	}
	got = get(s.ClaimAgentCommands(ctx, []store.AgentConnection{x}, []int{10}))(t)
	if len(got) != 1 || got[0].ID != second.ID {
		t.Fatalf("the second claim got %+v", got)
	}
	if got := get(s.ClaimAgentCommands(ctx, []store.AgentConnection{x}, []int{10}))(t); len(got) != 0 {
		t.Errorf("the third claim got %+v", got)
	}
	must(t, s.UnclaimAgentCommands(ctx, []store.AgentConnection{x}, []uuid.UUID{first.ID}))
	got = get(s.ClaimAgentCommands(ctx, []store.AgentConnection{x}, []int{10}))(t)
	if len(got) != 1 || got[0].ID != second.ID {
		t.Errorf("after a claim whose outcome was not known: %+v", got)
	}
	if got := answer("y", first.ID); len(got) != 0 {
		t.Error("another agent answered a command")
	}
	if got := answer("x", first.ID); len(got) != 1 {
		t.Error("the answer was not recorded")
	}
	if got := answer("x", first.ID); len(got) != 0 {
		t.Error("a second answer was recorded")
	}
	if all := get(s.AgentAnswers(ctx, env, []uuid.UUID{first.ID, second.ID}))(t); len(all) != 1 ||
		string(all[0].Answer) != "answer" {
		t.Errorf("the answers are %+v", all)
	}
	must(t, s.FinishAgentCommands(ctx, env, []uuid.UUID{first.ID, second.ID}))
	if left := get(s.UnfinishedAgentCommands(ctx, env))(t); len(left) != 1 || left[0].ID != second.ID {
		t.Errorf("what is not answered cannot be finished: %+v", left)
	}
	must(t, s.DisconnectAgents(ctx, []store.AgentConnection{old}))
	if here := get(s.ConnectedAgents(ctx))(t); len(here) != 2 {
		t.Errorf("the end of an old connection disconnects a new one: %+v", here)
	}
}

// Contents are stored once and read in parts, and go when nothing needs them.
func TestAgentContents(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, s)
	joinAgent(t, s, env, "x")
	content := make([]byte, 600<<10)
	for _, hash := range []string{"needed", "unused"} {
		if got := get(s.LackingContents(ctx, []string{hash}))(t); len(got) != 1 {
			t.Errorf("lacking %v", got)
		}
		must(t, s.PutContent(ctx, hash, content))
		must(t, s.PutContent(ctx, hash, content))
		if got := get(s.LackingContents(ctx, []string{hash}))(t); len(got) != 0 {
			t.Errorf("lacking %v", got)
		}
	}
	size, part, err := s.ContentSize(ctx, "needed")
	must(t, err)
	var read int64
	for n := 0; read < size; n++ {
		data := get(s.ContentPart(ctx, "needed", n))(t)
		if read += int64(len(data)); read < size && int64(len(data)) != part {
			t.Fatalf("part %d has %d bytes", n, len(data))
		}
	}
	if read != int64(len(content)) {
		t.Errorf("%d bytes were read", read)
	}
	must(t, s.PutContent(ctx, "empty", nil))
	if data := get(s.ContentPart(ctx, "empty", 0))(t); len(data) != 0 {
		t.Errorf("an empty content has %d bytes", len(data))
	}
	c := command("x")
	c.Needs = []string{"needed"}
	must(t, s.AddAgentCommands(ctx, env, []intent.NewAgentCommand{c}))
	later := time.Now().Add(time.Hour)
	must(t, s.ForgetAgents(ctx, later.Add(-24*time.Hour), later))
	if got := get(s.LackingContents(ctx, []string{"needed", "unused"}))(t); len(got) != 1 || got[0] != "unused" {
		t.Errorf("lacking after the clean-up: %v", got)
	}
}
