package cli

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// shared is an output that a test reads while a command writes it.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Somebody looks for errors in the log and then follows it while deployments end: also two that are recorded in another
// order than they ended in. Every line is printed once.
func TestLogs(t *testing.T) {
	r := servertest.NewRich(t)
	rest, err := api.New(api.Config{
		Control: r.Control, Store: r.Store, Logger: r.Log, Auth: r.People.API(), People: r.People, Tokens: r.Tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rest)
	defer server.Close()
	status, out, errs := ordain("", "logs", "production", "--server", server.URL, "--level", "ERROR",
		"--agent", "web04")
	if status != 0 || strings.Count(out, "ERROR") != 3 || strings.Contains(out, "DEBUG") ||
		!strings.Contains(out, r.FailedFile.String()) {
		t.Fatalf("%d\n%s%s", status, out, errs)
	}
	status, out, _ = ordain("", "logs", "production", "--server", server.URL, "-o", "json", "-n", "1")
	if status != 0 ||
		!strings.Contains(out, `"msg": "End of the deployment"`) && !strings.Contains(out, `"level": "ERROR"`) {
		t.Errorf("%d\n%s", status, out)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var followed shared
	command := newLogs()
	command.SetArgs([]string{"production", "--server", server.URL, "--follow", "--type", "Dir"})
	command.SetOut(&followed)
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	until := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(followed.String(), text); {
			if time.Now().After(deadline) {
				t.Fatalf("nothing of %q in\n%s", text, followed.String())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	record := func(end time.Time, message string) {
		t.Helper()
		err := r.Store.FinishActions(ctx, r.Production.ID, []intent.FinishedAction{{
			Action: intent.Action{
				ID: uuid.New(), Environment: r.Production.ID, Kind: intent.ActionDeploy,
				Resource: r.HealthyDir, Version: 7, Started: end, Finished: &end, Status: intent.StatusDeployed,
				Messages: []intent.LogLine{{Level: "INFO", Message: message, Time: end}},
			},
			State: intent.ResourceState{
				ID: r.HealthyDir, Compliance: intent.Compliant, LastRun: intent.RunSuccessful,
				Blocked: intent.NotBlocked,
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	until("End of the deployment")
	record(r.Now().Add(time.Second), "the later one")
	until("the later one")
	record(r.Now().Add(900*time.Millisecond), "the one before it")
	until("the one before it")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, once := range []string{"End of the deployment", "the later one", "the one before it"} {
		if n := strings.Count(followed.String(), once); n != 1 {
			t.Errorf("%q is printed %d times", once, n)
		}
	}
}
