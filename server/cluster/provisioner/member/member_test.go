package member_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/agent/agenttest"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/cluster/provisioner/member"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store/storetest"
)

// fails checks that an error says what is wrong, and of which kind it is.
func fails(t *testing.T, err error, kind fault.Kind, says string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %q (%s), and should be %s and say %q", err, fault.KindOf(err), kind, says)
	}
}

// A provisioner joins with a token, gets a task of its project with its secrets and a resource, and finishes the task.
// What it keeps is readable to its owner only, and the record and the audit trail know of it.
func TestJoinAndWork(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	job := s.work(s.project, s.env, 1)
	p := s.join(s.project, "building/7")
	for _, name := range []string{"identity.pem", "ca.pem", "provisioner.json"} {
		info, err := os.Stat(filepath.Join(p.folder, name))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	welcome, err := p.hello(t.Context())
	must(t, err)
	if welcome.Project != s.project.String() || welcome.Name != "building/7" {
		t.Errorf("the server takes the provisioner for %+v", welcome)
	}
	taken, err := p.Take(t.Context(), task.Take{Room: 4, WaitMS: 20_000})
	must(t, err)
	if len(taken.Tasks) != 1 ||
		string(taken.Tasks[0].Provider.Fields["password"]) != `"secret of `+s.project.String()+`"` {
		t.Fatalf("it took %+v", taken.Tasks)
	}
	r, err := p.Resource(t.Context(), protocol.Hash(content))
	must(t, err)
	got, err := io.ReadAll(r)
	must(t, err)
	must(t, r.Close())
	if !bytes.Equal(got, content) {
		t.Errorf("the resource has %d bytes, and should have %d", len(got), len(content))
	}
	one := taken.Tasks[0]
	dropped, err := p.Finish(t.Context(), []task.Result{{ID: one.ID, Fence: one.Fence, Status: task.Done}})
	must(t, err)
	all, err := s.store.ClusterTasks(t.Context(), job)
	must(t, err)
	if len(dropped) > 0 || all[0].State != intent.TaskComplete {
		t.Errorf("the task is %s, %v were dropped", all[0].State, dropped)
	}
	list, err := s.service.Provisioners(t.Context(), s.project)
	must(t, err)
	if len(list) != 1 || list[0].Program != "test 1" || list[0].Room != 4 || list[0].Seen == nil {
		t.Errorf("the record has %+v", list)
	}
	page, err := s.store.Audit(t.Context(), s.project, uuid.Nil, intent.ListQuery{Limit: 10})
	must(t, err)
	trail := page.Items
	if len(trail) != 1 || trail[0].Verb != "provisioner.join" || trail[0].Project != s.project ||
		trail[0].Outcome != intent.AuditDone {
		t.Errorf("the audit trail has %+v", trail)
	}
}

// Tokens that ended, and those of something else, are refused with the reason, and leave nothing behind.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ctx := t.Context()
	folder := func() string { return filepath.Join(t.TempDir(), "state") }

	used, text := s.token(s.project, "a")
	must(t, member.Join(ctx, text, folder()))
	at := folder()
	fails(t, member.Join(ctx, text, at), fault.Unauthorized, "this join token was used at")
	if _, err := member.Open(at, storetest.Logger(t)); !fault.Is(err, fault.NotFound) {
		t.Errorf("a provisioner that was refused has joined: %v", err)
	}
	if left, _ := os.ReadDir(at); len(left) > 0 {
		t.Errorf("the refused join left %v", left)
	}
	if err := s.service.RevokeToken(ctx, s.project, used.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("a used token was revoked: %v", err)
	}

	revoked, text := s.token(s.project, "b")
	other, _ := s.newProject("other")
	if err := s.service.RevokeToken(ctx, other, revoked.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("a token was revoked by another project: %v", err)
	}
	must(t, s.service.RevokeToken(ctx, s.project, revoked.ID))
	fails(t, member.Join(ctx, text, folder()), fault.Unauthorized, "this join token was revoked at")

	_, text = s.token(s.project, "c")
	s.ahead.Store(int64(2 * time.Hour))
	fails(t, member.Join(ctx, text, folder()), fault.Unauthorized, "this join token expired at")
	s.ahead.Store(0)

	_, ofAgent, err := s.agents.CreateToken(ctx, s.env, "agent", 0)
	must(t, err)
	fails(t, member.Join(ctx, ofAgent, folder()), fault.Invalid, "this is a token for an agent")
	_, err = agenttest.Join(ctx, text)
	if err == nil || !strings.Contains(err.Error(), "this is a token for a provisioner") {
		t.Errorf("an agent with the token of a provisioner: %v", err)
	}
	err = member.Join(ctx, "garbage", folder())
	fails(t, err, fault.Invalid, "this is not a join token: it begins with ordain-provisioner.")
	if strings.Count(err.Error(), "is not a join token") != 1 {
		t.Errorf("it is told more than once: %v", err)
	}
	// The same when somebody changes the prefix, and lets the server decide.
	for name, forge := range map[string]func() error{
		"agent's": func() error {
			token, err := protocol.ParseToken(ofAgent)
			must(t, err)
			return member.Join(ctx, token.Provisioner(), folder())
		},
		"provisioner's": func() error {
			token, err := protocol.ParseProvisionerToken(text)
			must(t, err)
			_, err = agenttest.Join(ctx, token.String())
			return err
		},
		"guessed": func() error {
			token, err := protocol.ParseProvisionerToken(text)
			must(t, err)
			token.Secret = strings.Repeat("A", len(token.Secret))
			return member.Join(ctx, token.Provisioner(), folder())
		},
	} {
		if err := forge(); err == nil || !strings.Contains(err.Error(), "this server knows no such join token") {
			t.Errorf("a token that is %s: %v", name, err)
		}
	}
	must(t, member.Join(ctx, text, folder())) // it has not been used by any of that

	tokens, err := s.service.Tokens(ctx, s.project)
	must(t, err)
	if len(tokens) != 3 {
		t.Errorf("the project has the tokens %+v", tokens)
	}
	for _, name := range []string{"", " a", "a\n", strings.Repeat("n", 300)} {
		if _, _, err := s.service.CreateToken(ctx, s.project, name, 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("a token for %.10q: %v", name, err)
		}
	}
	if _, _, err := s.service.CreateToken(ctx, uuid.New(), "a", 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("a token for no project: %v", err)
	}
}

// Two machines use one token in the same moment: one of them joins.
func TestOneTokenTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	_, text := s.token(s.project, "a")
	var all sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		folder := filepath.Join(t.TempDir(), "state")
		all.Go(func() { results <- member.Join(t.Context(), text, folder) })
	}
	all.Wait()
	close(results)
	joined := 0
	for err := range results {
		if err == nil {
			joined++
			continue
		}
		fails(t, err, fault.Unauthorized, "this join token was used at")
	}
	if joined != 1 {
		t.Errorf("%d have joined", joined)
	}
}

// A server that cannot be reached, and one in its place, do not get the token.
func TestWrongServer(t *testing.T) {
	t.Parallel()
	s, other := newSite(t, nil), newSite(t, nil)
	_, text := s.token(s.project, "a")
	token, err := protocol.ParseProvisionerToken(text)
	must(t, err)
	there := token.URL
	token.URL = other.agents.URL()
	folder := filepath.Join(t.TempDir(), "state")
	fails(t, member.Join(t.Context(), token.Provisioner(), folder), fault.Unauthorized,
		"is not the one that the join token")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	token.URL = "https://" + l.Addr().String()
	must(t, l.Close())
	fails(t, member.Join(t.Context(), token.Provisioner(), folder), fault.Unavailable, "cannot be reached")
	token.URL = there
	must(t, member.Join(t.Context(), token.Provisioner(), folder))
	fails(t, member.Join(t.Context(), text, folder), fault.Conflict, "has joined already")
	must(t, os.WriteFile(filepath.Join(folder, "identity.pem"), []byte("x"), 0o600))
	_, err = member.Open(folder, storetest.Logger(t))
	fails(t, err, fault.Invalid, "is damaged")
}

// The certificate of an agent does not open the door of provisioners, nor the other way around, nor does none at all.
func TestCertificatesOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := s.join(s.project, "a")
	_, text, err := s.agents.CreateToken(t.Context(), s.env, "a", 0)
	must(t, err)
	agent, err := agenttest.Join(t.Context(), text)
	must(t, err)
	pair, err := os.ReadFile(filepath.Join(p.folder, "identity.pem"))
	must(t, err)

	// The agent's key and certificate in the folder of a provisioner.
	key, err := keyPEM(agent.Certificate.PrivateKey)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(p.folder, "identity.pem"), append(key, agent.Answer.Certificate...), 0o600))
	_, err = s.open(p.folder).hello(t.Context())
	fails(t, err, fault.Unauthorized, "that of an agent does not do")
	fails(t, s.open(p.folder).Member.Renew(t.Context()), fault.Unauthorized, "that of an agent does not do")

	// The provisioner's at the door of agents.
	mine := *agent
	mine.Certificate, err = parse(pair)
	must(t, err)
	_, err = mine.Connect(t.Context())
	var refused *agenttest.Refused
	if !errors.As(err, &refused) || refused.Code != 403 || !strings.Contains(refused.Message, "of a provisioner") {
		t.Errorf("a provisioner connects as an agent: %v", err)
	}
	conn, err := agent.Connect(t.Context())
	must(t, err)
	conn.Close()

	code, body := (&agenttest.Credentials{Roots: agent.Roots, Answer: agent.Answer}).Get(t.Context(),
		task.ResourcePath+"/"+protocol.Hash(content))
	if code != 401 || !strings.Contains(body, "needs the certificate of a provisioner") {
		t.Errorf("without a certificate: %d %s", code, body)
	}
}

// A revoked provisioner is refused at once: also the request that waits for a task, whichever server the person talked
// to. It comes back only with a new token, and then under its old name.
func TestRevoke(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	elsewhere, err := authority.New(authority.Config{ // another server of the installation
		Store: s.store, Root: s.agents, Logger: storetest.Logger(t), Now: s.now,
	})
	must(t, err)
	for name, revoke := range map[string]func(name string) error{
		"here":      func(name string) error { return s.service.Revoke(t.Context(), s.project, name) },
		"elsewhere": func(name string) error { return elsewhere.Revoke(t.Context(), s.project, name) },
	} {
		p := s.join(s.project, name)
		before, err := s.store.ProvisionerNamed(t.Context(), s.project, name)
		must(t, err)
		_, err = p.hello(t.Context())
		must(t, err)
		taken := make(chan error, 1)
		go func() {
			got, err := p.Take(t.Context(), task.Take{Room: 4, WaitMS: 30_000})
			if err == nil && len(got.Tasks) > 0 {
				err = errors.New("a revoked provisioner got a task")
			}
			taken <- err
		}()
		s.waiting(name)
		must(t, revoke(name))
		if name == "elsewhere" { // this server notices when there is something to hand out
			s.work(s.project, s.env, 1)
		}
		select {
		case err := <-taken:
			fails(t, err, fault.Unauthorized, "was revoked at")
		case <-time.After(20 * time.Second):
			t.Fatal("the request of the revoked provisioner still waits")
		}
		_, err = p.hello(t.Context())
		fails(t, err, fault.Unauthorized, "was revoked at")
		fails(t, p.Member.Renew(t.Context()), fault.Unauthorized, "was revoked at")
		if err := revoke(name); !fault.Is(err, fault.Conflict) {
			t.Errorf("revoking again: %v", err)
		}
		again := s.join(s.project, name)
		_, err = again.hello(t.Context())
		must(t, err)
		_, err = p.hello(t.Context())
		fails(t, err, fault.Unauthorized, "has another certificate since")
		after, err := s.store.ProvisionerNamed(t.Context(), s.project, name)
		must(t, err)
		if after.ID != before.ID || after.Revoked != nil {
			t.Errorf("it was %+v, and is %+v", before, after)
		}
	}
	if err := s.service.Revoke(t.Context(), s.project, "nobody"); !fault.Is(err, fault.NotFound) {
		t.Errorf("revoking nobody: %v", err)
	}
}

// waiting waits until a request of a provisioner is being served.
func (s *site) waiting(name string) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); s.service.Serving(s.project, name) == 0; {
		if time.Now().After(end) {
			s.t.Fatal("no request waits")
		}
		time.Sleep(time.Millisecond)
	}
}

// Two projects have a provisioner with the same name. Neither sees, finishes, renews or prints for a task of the other.
func TestProjectsAreApart(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	other, env := s.newProject("other")
	a, b := s.join(s.project, "x"), s.join(other, "x")
	job := s.work(other, env, 1)
	taken, err := a.Take(t.Context(), task.Take{Room: 4})
	must(t, err)
	if len(taken.Tasks) > 0 {
		t.Fatalf("it took the task of another project: %+v", taken.Tasks)
	}
	taken, err = b.Take(t.Context(), task.Take{Room: 4, WaitMS: 20_000})
	must(t, err)
	if len(taken.Tasks) != 1 {
		t.Fatalf("the task was not handed out: %+v", taken)
	}
	lease := task.Lease{ID: taken.Tasks[0].ID, Fence: taken.Tasks[0].Fence}
	result := []task.Result{{ID: lease.ID, Fence: lease.Fence, Status: task.Done}}
	dropped, err := a.Finish(t.Context(), result)
	must(t, err)
	renewed, err := a.Client.Renew(t.Context(), task.Renew{Leases: []task.Lease{lease}})
	must(t, err)
	if len(dropped) != 1 || len(renewed.Gone) != 1 {
		t.Errorf("dropped %v, gone %v: another project's provisioner has the lease", dropped, renewed.Gone)
	}
	must(t, a.Output(t.Context(), task.Output{Lease: lease, Text: "forged\n"}))
	must(t, b.Output(t.Context(), task.Output{Lease: lease, Text: "true\n"}))
	var printed string
	for end := time.Now().Add(20 * time.Second); printed == "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		row, err := s.store.ClusterTask(t.Context(), job, 0)
		must(t, err)
		printed = row.Output
	}
	if printed != "true\n" {
		t.Errorf("the task printed %q", printed)
	}
	renewed, err = b.Client.Renew(t.Context(), task.Renew{Leases: []task.Lease{lease}})
	must(t, err)
	dropped, err = b.Finish(t.Context(), result)
	must(t, err)
	if len(dropped)+len(renewed.Gone) > 0 {
		t.Errorf("its own provisioner lost the lease: dropped %v, gone %v", dropped, renewed.Gone)
	}
}

// A provisioner renews its certificate while it works. An answer that is lost does no harm, since the certificate of
// before counts until the new one is used; after that it never counts again.
func TestRenew(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := s.join(s.project, "a")
	thief := s.open(copyOf(t, p.folder)) // of what the provisioner had at first
	_, err := thief.hello(t.Context())
	must(t, err)

	lost := s.open(copyOf(t, p.folder))
	must(t, lost.Member.Renew(t.Context())) // it gets a certificate and is gone
	_, err = p.hello(t.Context())
	must(t, err)
	before, err := s.store.ProvisionerNamed(t.Context(), s.project, "a")
	must(t, err)

	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := p.hello(t.Context()); err != nil {
					t.Errorf("while certificates are renewed: %v", err)
					return
				}
			}
		})
	}
	for range 5 {
		must(t, p.Member.Renew(t.Context()))
		_, err = p.hello(t.Context())
		must(t, err)
	}
	close(stop)
	busy.Wait()
	after, err := s.store.ProvisionerNamed(t.Context(), s.project, "a")
	must(t, err)
	if before.Serial == after.Serial || !after.Expires.Equal(p.Expires()) {
		t.Errorf("the record has %+v, the provisioner's certificate expires at %v", after, p.Expires())
	}
	for _, old := range []*provisioner{thief, lost} {
		_, err = old.hello(t.Context())
		fails(t, err, fault.Unauthorized, "has another certificate since")
		fails(t, old.Member.Renew(t.Context()), fault.Unauthorized, "has another certificate since")
	}
	_, err = s.open(p.folder).hello(t.Context()) // what is on the disk is what counts
	must(t, err)
}

// A certificate that was renewed and not used yet ends with the provisioner, also when that joins again.
func TestRenewedAndRevoked(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := s.join(s.project, "a")
	must(t, p.Member.Renew(t.Context()))
	must(t, s.service.Revoke(t.Context(), s.project, "a"))
	again := s.join(s.project, "a")
	_, err := p.hello(t.Context())
	fails(t, err, fault.Unauthorized, "has another certificate since")
	_, err = again.hello(t.Context())
	must(t, err)
}

// The clock of the server is a year ahead of the provisioner's. They work together, and the certificate is renewed in
// the background by the server's clock. One that has expired by the server's clock has to join again.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	const lifetime = 6 * time.Second
	for name, ahead := range map[string]time.Duration{"late": 365 * 24 * time.Hour, "early": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(c *authority.Config) { c.Lifetime = lifetime })
			s.ahead.Store(int64(ahead))
			p := s.join(s.project, "a")
			first := p.Expires()
			_, err := p.hello(t.Context())
			must(t, err)
			must(t, p.Start(t.Context()))
			for end := time.Now().Add(30 * time.Second); !p.Expires().After(first.Add(lifetime)); {
				if time.Now().After(end) {
					t.Fatal("the certificate was not renewed")
				}
				if _, err := p.hello(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
			p.Stop()
			s.ahead.Add(int64(lifetime + time.Minute))
			_, err = p.hello(t.Context())
			fails(t, err, fault.Unauthorized, "It has to join again")
			fails(t, p.Member.Renew(t.Context()), fault.Unauthorized, "expired at")
			_, text := s.token(s.project, "a")
			if name == "late" {
				must(t, os.Remove(filepath.Join(p.folder, "identity.pem")))
			} // by the other clock, everybody can see that it has expired
			must(t, member.Join(t.Context(), text, p.folder))
			_, err = s.open(p.folder).hello(t.Context())
			must(t, err)
		})
	}
}

// One provisioner cannot hold the places of all: its requests are bounded, and others still get an answer. When the
// server stops, nobody waits for requests that wait for tasks.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	greedy, modest := s.join(s.project, "greedy"), s.join(s.project, "modest")
	const most = 64
	ended := make(chan error, most+1)
	for range most + 1 {
		go func() {
			_, err := greedy.Take(t.Context(), task.Take{Room: 1, WaitMS: 30_000})
			ended <- err
		}()
	}
	fails(t, <-ended, fault.TooMany, "busy with requests of provisioners")
	if n := s.service.Serving(s.project, "greedy"); n != most {
		t.Errorf("%d requests are being served", n)
	}
	_, err := modest.hello(t.Context())
	must(t, err)
	began := time.Now()
	s.gateway.Stop()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the server stopped after %s", took)
	}
	for range most {
		fails(t, <-ended, fault.Unavailable, "cannot be reached")
	}
}

// A request that waits for a task as long as it may is answered, although the listener's own deadlines are as short.
func TestLongPoll(t *testing.T) {
	tool.Heavy(t, "waits for half a minute")
	if testing.Short() {
		t.Skip("this takes half a minute")
	}
	t.Parallel()
	s := newSite(t, nil)
	p := s.join(s.project, "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	taken, err := p.Take(ctx, task.Take{Room: 1, WaitMS: 30_000})
	if err != nil || len(taken.Tasks) > 0 || time.Since(began) < 29*time.Second {
		t.Errorf("after %s: %+v, %v", time.Since(began), taken, err)
	}
}
