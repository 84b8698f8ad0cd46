package deployer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// gatekeeper is the part of a record about overrides.
type gatekeeper interface {
	SetSetting(ctx context.Context, env intent.EnvironmentID, name string, value any) error
	Environment(ctx context.Context, env intent.EnvironmentID) (intent.Environment, error)
	AddOverride(ctx context.Context, env intent.EnvironmentID, o intent.Override) error
	EndOverride(ctx context.Context, env intent.EnvironmentID, id uuid.UUID, who intent.Actor) error
}

// reread reads the environment from the record, as a starting server does.
func (s *stage) reread(db gatekeeper) {
	s.t.Helper()
	e, err := db.Environment(s.t.Context(), s.env.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	s.env = e
}

// A release comes while changes are held. The server is killed and started again: they are still held. An override
// lets those of one agent through, the server is killed in the middle of them, and after the next start it goes on
// with them alone. When the override is ended, the next release waits again.
func TestRestartWhileChangesAreHeld(t *testing.T) {
	hour := time.Now().UTC().Hour()
	for name, window := range map[string]map[string]any{
		"freeze": {"kind": "freeze", "cron": fmt.Sprintf("0 %d * * *", hour), "duration": 7200},
		"window": {"kind": "window", "cron": fmt.Sprintf("0 %d * * *", (hour+12)%24), "duration": 3600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inPostgres(t)
			db := s.rec.(gatekeeper)
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(db.SetSetting(t.Context(), s.env.ID, "maintenance_windows", map[string]any{"quiet": window}))
			s.reread(db)
			s.start()
			s.release("x/a 1", "x/b 1 x/a", "y/c 1")
			s.wait()
			s.ran()
			s.d.kill()
			s.start()
			s.wait()
			s.ran()
			s.status("x/a", intent.StatusAvailable)

			now := time.Now().UTC().Truncate(time.Microsecond)
			o := intent.Override{
				ID:      uuid.New(),
				By:      "ida",
				Reason:  "the router",
				Agents:  []string{"x"},
				Created: now,
				Until:   now.Add(time.Hour),
			}
			check(db.AddOverride(t.Context(), s.env.ID, o))
			s.exec.misbehave("x/a", hangs)
			s.reread(db)
			s.d.Changed(s.env)
			s.exec.awaits("x/a")
			s.d.kill()
			s.exec.misbehave("x/a", nil)
			s.exec.taken()
			s.reread(db)
			s.start()
			s.wait()
			s.ran("x/a", "x/b")
			s.status("x/b", intent.StatusDeployed)
			s.status("y/c", intent.StatusAvailable)

			check(db.EndOverride(t.Context(), s.env.ID, o.ID, intent.Actor{By: "ida", At: time.Now()}))
			s.reread(db)
			s.d.Changed(s.env)
			s.release("x/a 2", "x/b 2", "y/c 2")
			s.wait()
			s.ran()
		})
	}
}
