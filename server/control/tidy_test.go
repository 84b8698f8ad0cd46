package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// Each kind of record is kept for as long as its own setting says; of a halted
// environment everything is.
func TestRecordsGoByTheirSettings(t *testing.T) {
	t.Parallel()
	s, clock := newStage(t), &hand{}
	s.Stop()
	s.parts.now = clock.now
	s.restart()
	for name, value := range map[string]int{
		"resource_action_logs_retention": 11, "drift_retention": 12, "notification_retention": 13,
		"delivery_retention": 14, "available_versions_to_keep": 2,
	} {
		if err := s.SetSetting(t.Context(), s.env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		s.push(fmt.Sprint("c", i+1))
		s.done(s.request("api"))
	}
	s.parts.mu.Lock()
	s.parts.broken = true
	s.parts.mu.Unlock()
	s.done(s.request("api")) // people are told of it
	s.drifts()
	s.outcome(s.receive("1", intent.HookEvent{Kind: intent.HookPing, Name: "ping"}))
	if err := s.Halt(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	day := func(n int) {
		t.Helper()
		clock.by.Store(int64(time.Duration(n)*24*time.Hour + time.Hour))
		if err := s.keepers.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	day(20)
	if got := s.records(); got != "2 actions, 1 drift, 1 notice, 1 delivery, 4 versions" {
		t.Errorf("a halted environment has %s", got)
	}
	if err := s.Resume(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	for n := 10; n <= 14; n++ {
		day(n)
		left := []int{2, 1, 1, 1}
		for i := range n - 10 {
			left[i] = 0
		}
		want := fmt.Sprintf("%d actions, %d drift, %d notice, %d delivery, 3 versions", left[0], left[1], left[2],
			left[3])
		if got := s.records(); got != want {
			t.Errorf("after %d days there are %s; want %s", n, got, want)
		}
	}
}

// drifts has the resource of the stage be found otherwise than it is to be, and mended.
func (s *stage) drifts() {
	s.t.Helper()
	states, err := s.store.States(s.t.Context(), s.env)
	if err != nil || len(states) != 1 {
		s.t.Fatal(states, err)
	}
	now, st := s.parts.now().UTC().Truncate(time.Microsecond), states[0]
	st.Compliance, st.LastRun, st.LastRunAt = intent.Compliant, intent.RunSuccessful, &now
	st.DeployedHash, st.LastDeployed = st.IntentHash, 4
	for _, report := range []intent.DriftReport{
		{Open: true, Found: map[string]intent.AttributeChange{"commit": {Current: `"x"`, Desired: `"c4"`}}},
		{Complete: true},
	} {
		a := intent.Action{
			ID: uuid.New(), Kind: intent.ActionDeploy, Resource: st.ID, Version: 4,
			Started: now, Finished: &now, Status: intent.StatusDeployed, Change: intent.Updated,
		}
		finished := []intent.FinishedAction{{State: st, Action: a, Drift: &report}}
		if err := s.store.FinishActions(s.t.Context(), s.env, finished); err != nil {
			s.t.Fatal(err)
		}
	}
}

// records counts what the environment of the stage has.
func (s *stage) records() string {
	s.t.Helper()
	ctx, all := s.t.Context(), intent.ListQuery{}
	id := intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: "1"}
	actions, err := s.store.Actions(ctx, s.env, id, intent.ActionDeploy, 10)
	if err != nil {
		s.t.Fatal(err)
	}
	drift, err := s.store.Drift(ctx, s.env, all)
	if err != nil {
		s.t.Fatal(err)
	}
	notices, err := s.store.Notifications(ctx, s.env, all)
	if err != nil {
		s.t.Fatal(err)
	}
	deliveries, err := s.store.Deliveries(ctx, s.env, all)
	if err != nil {
		s.t.Fatal(err)
	}
	versions, err := s.store.Versions(ctx, s.env, all)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("%d actions, %d drift, %d notice, %d delivery, %d versions", len(actions),
		len(drift.Items), len(notices.Items), len(deliveries.Items), len(versions.Items))
}
