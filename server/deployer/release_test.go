package deployer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/scheduler"
	"ordain.dev/ordain/server/store/storetest"
)

// What a release does to the states of resources is written twice: in SQL, so that it is durable with the release,
// and in the scheduler, which does not read it back. Both do the same, whatever state a resource was in.
func TestReleaseIsAlikeInTheRecordAndInTheScheduler(t *testing.T) {
	t.Parallel()
	db, ctx := storetest.Open(t), t.Context()
	env := newEnvironment(t, db)
	random := rand.New(rand.NewPCG(5, 2026))
	version := func(hashes []string) []intent.Resource {
		var out []intent.Resource
		for i, hash := range hashes {
			if hash == "" {
				continue
			}
			r := intent.Resource{
				ID:            rid(fmt.Sprintf("a%d/r%03d", i%4, i)),
				AttributeHash: hash,
				Attributes:    fmt.Appendf(nil, `{"hash": %q}`, hash),
			}
			if hash == "u" {
				r.Undefined = []string{"hash"}
			}
			out = append(out, r)
		}
		return out
	}
	hashes := make([]string, 200)
	pick := func() {
		for i := range hashes {
			if hashes[i] == "" || random.IntN(2) == 0 {
				hashes[i] = []string{"", "1", "2", "3", "u"}[random.IntN(5)]
			}
		}
	}
	release := func() (int, []intent.Resource) {
		resources := version(hashes)
		number, err := db.StoreVersion(ctx, intent.NewVersion{Environment: env.ID, Resources: resources}, now())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.ReleaseVersion(ctx, env.ID, number, now()); err != nil {
			t.Fatal(err)
		}
		if resources, err = db.VersionResources(ctx, env.ID, number); err != nil {
			t.Fatal(err)
		}
		return number, resources
	}
	states := func() []intent.ResourceState {
		out, err := db.States(ctx, env.ID)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(out, func(a, b intent.ResourceState) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
		return out
	}
	pick()
	number, resources := release()
	seen := map[intent.Parking]int{}
	code := map[string]string{
		"t::R": "code",
	} // stays: that other code unparks it is the scheduler's business, which records it by itself
	for range 20 {
		// Every resource of the version comes into some state that the scheduler may leave it in.
		var done []intent.FinishedAction
		for _, st := range states() {
			if st.Orphaned == 0 && st.Compliance != intent.Undefined {
				done = append(done, finished(env, someState(random, st), number))
			}
		}
		if err := db.FinishActions(ctx, env.ID, done); err != nil {
			t.Fatal(err)
		}
		s, err := scheduler.New(
			scheduler.Snapshot{
				Version:   number,
				Resources: resources,
				States:    states(),
				Halted:    true,
				Now:       now(),
				Code:      code,
			},
			scheduler.Limits{},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range states() {
			seen[st.Parked]++
		}
		pick()
		number, resources = release()
		if _, err := s.NewVersion(number, resources, code, now()); err != nil {
			t.Fatal(err)
		}
		for _, want := range states() {
			got, _ := s.State(want.ID)
			// A resource that waits for the recovery of something that is not bad is tried, and no longer said to wait.
			if got.Blocked == intent.NotBlocked && want.Blocked == intent.TemporarilyBlocked {
				got.Blocked = want.Blocked
			}
			if d := gocmp.Diff(want, got); d != "" {
				t.Fatalf("record (-) and scheduler (+) differ after version %d:\n%s", number, d)
			}
		}
	}
	if seen[intent.ParkedAttempts] < 50 || seen[intent.ParkedContested] < 50 {
		t.Fatalf("the test covers only %v", seen)
	}
}

// someState is a state that a resource may be in at rest.
func someState(random *rand.Rand, st intent.ResourceState) intent.ResourceState {
	at := now().Add(-time.Hour)
	st = scheduler.Unparked(st)
	st.LastRunAt, st.LastDeployed, st.Drifted, st.Blocked = &at, 1, false, intent.NotBlocked
	switch random.IntN(6) {
	case 0, 1:
		st.Compliance, st.LastRun = intent.Compliant, intent.RunSuccessful
		st.DeployedHash, st.LastSuccess = st.IntentHash, &at
		if random.IntN(2) == 0 {
			st.Compliance, st.DeployedHash, st.Drifted = intent.NonCompliant, "", true
			st.Parked, st.ParkedAt, st.FailedCode = intent.ParkedContested, &at, "code"
			st.Heals = []intent.Heal{{Of: "hash", At: at}, {Of: "hash", At: at.Add(time.Minute)}}
		}
	case 2:
		st.Compliance, st.LastRun = intent.NonCompliant, intent.RunFailed
		st.DeployedHash, st.Attempts, st.RetryAt, st.FailedCode = "", 3, &at, "code"
	case 3:
		st.Compliance, st.LastRun, st.DeployedHash, st.Attempts = intent.NonCompliant, intent.RunFailed, "", 20
		st.Parked, st.ParkedAt, st.FailedCode = intent.ParkedAttempts, &at, "code"
	case 4:
		st.Compliance, st.LastRun, st.DeployedHash, st.Drifted = intent.NonCompliant, intent.RunSuccessful, "", true
	case 5:
		st.Compliance, st.LastRun, st.Blocked = intent.NonCompliant, intent.RunSkipped, intent.TemporarilyBlocked
	}
	return st
}

func finished(env intent.Environment, st intent.ResourceState, version int) intent.FinishedAction {
	at := now()
	return intent.FinishedAction{State: st, Action: intent.Action{
		ID: uuid.New(), Environment: env.ID, Kind: intent.ActionDeploy, Resource: st.ID, Version: version,
		Started: at, Finished: &at, Status: intent.StatusDeployed, Change: intent.NoChange,
	}}
}
