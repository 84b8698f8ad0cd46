package console

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/servertest"
)

// queueOf is the queue of web01, which deploys one file while another waits for it.
func queueOf(r *servertest.Rich) intent.Queue {
	return intent.Queue{Here: true, Running: 1, Waiting: 2, Agents: []intent.AgentQueue{{
		Agent: "web01", Waiting: 2, Why: intent.AgentBusy,
		Running: []intent.QueuedTask{{
			Resource: r.FailedFile, Reason: "new version 7", Since: r.Now().Add(-time.Minute),
		}},
		Next: []intent.QueuedTask{{Resource: r.DriftedFile, Reason: "repair timer", WaitsFor: r.FailedFile}},
	}}}
}

// The queue of an environment has its compiles too: what runs, and what the next one waits for.
func TestTheQueueHasCompiles(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	idle := newEnvironmentIn(t, r.Server, intent.Source{URL: servertest.RepositoryURL, Branch: "main"})
	contains(t, get(t, h, envURL(idle)+"/queue").Body.String(), "No compile runs, and none waits.")
	run := intent.Compile{ID: uuid.New(), Environment: r.Production.ID, Requested: r.Now(), Update: true, Export: true}
	must(t, r.Store.EnqueueCompile(t.Context(), run))
	at := envURL(r.Production.ID)
	contains(t, get(t, h, at+"/queue").Body.String(), runURL(r.Production.ID, r.Running),
		runURL(r.Production.ID, run.ID), "waits for the run before it")
	contains(t, get(t, h, at+"/runs?show=open").Body.String(), "waits for the run before it")
	if strings.Contains(get(t, h, at+"/queue?agent=web01").Body.String(), "<h2>Compiles</h2>") {
		t.Error("the queue of an agent has compiles")
	}
}

// The page of the queue says what runs, what waits for it, and how much else there is; axe finds no fault in it, nor in
// the charts of metrics.
func TestTheQueueSaysWhatItWaitsFor(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := rich(t)
	path := envURL(r.Production.ID) + "/queue"
	if body := get(t, h, path).Body.String(); !strings.Contains(body, "No server process answers") {
		t.Error("nobody answers, and the page does not say so")
	}
	answer, err := json.Marshal(queueOf(r))
	must(t, err)
	defer r.Bus.Answer("queue", func(context.Context, intent.EnvironmentID, []byte) ([]byte, bool) {
		return answer, true // as the process that owns the environment
	})()
	body := get(t, h, path).Body.String()
	for _, want := range []string{
		"1 task running, 2 resources waiting.", r.FailedFile.String(), "new version 7", "waits for", "and 1 more",
		"The next task waits for the one that runs.",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	_, err = r.Store.RecordMetrics(t.Context(), r.Now().Add(-time.Minute), -100*365*24*time.Hour)
	must(t, err)
	b := browse(t, h)
	for _, path := range []string{path, path + "?agent=web01", envURL(r.Production.ID) + "/metrics?range=hour"} {
		b.open(path)
		b.accessible(path)
		b.look(390, 800, "dark")
		b.fits(path)
	}
}
