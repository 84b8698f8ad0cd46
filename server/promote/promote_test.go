package promote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/promote"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// Each gate that the policy asks for is there, and says what holds it. What a
// person cannot override comes on top of them.
func TestGates(t *testing.T) {
	t.Parallel()
	whole := intent.FollowPolicy{Soak: time.Hour, Compliant: true, NoDrift: true, Approval: true}
	failed, ida := noon.Add(-10*time.Minute), &intent.Actor{By: "ida", Reason: "looked at it"}
	for name, test := range map[string]struct {
		policy   intent.FollowPolicy
		deployed intent.Followed
		hold     intent.FollowHold
		approved *intent.Actor
		waits    string
		want     promote.Hold
	}{
		"nothing is asked for": {waits: "waits to be looked at"},
		"all is well": {
			policy: whole, deployed: intent.Followed{Since: noon.Add(-2 * time.Hour)}, approved: ida,
			waits: "waits to be looked at",
		},
		"only the approval is missing": {
			policy: whole, deployed: intent.Followed{Since: noon.Add(-2 * time.Hour)},
			waits: "waits: approval of this commit", want: promote.Hold{Held: true, Approval: true},
		},
		"it soaks": {
			policy: whole, deployed: intent.Followed{Since: noon.Add(-20 * time.Minute)}, approved: ida,
			waits: "waits: soak until 12:40 UTC", want: promote.Hold{Held: true, Next: noon.Add(40 * time.Minute)},
		},
		"a failure lets it soak anew": {
			policy:   whole,
			deployed: intent.Followed{Since: noon.Add(-2 * time.Hour), Broke: &failed, BrokeOf: "a::B[x,y=z]"},
			approved: ida, waits: "waits: soak until 12:50 UTC, for a::B[x,y=z] failed at 11:50 UTC",
			want: promote.Hold{Held: true, Next: noon.Add(50 * time.Minute)},
		},
		"resources and drift": {
			policy: intent.FollowPolicy{Compliant: true, NoDrift: true},
			deployed: intent.Followed{
				Differ: 3, DifferFirst: []string{"a", "b"}, Drifted: 1, DriftFirst: []string{"c"},
			},
			waits: "waits: 3 resources are not compliant: a, b and 1 more; 1 record of drift is open: c",
			want:  promote.Hold{Held: true},
		},
		"halted": {
			hold: intent.FollowHold{Halted: true}, waits: "waits: the environment is halted",
			want: promote.Hold{Held: true, Firm: true},
		},
		"blocked here": {
			hold:  intent.FollowHold{Blocked: &intent.Block{By: "ida", Reason: "broken"}},
			waits: "waits: the commit is blocked here: ida took it back: broken",
			want:  promote.Hold{Held: true, Firm: true},
		},
		"paused": {
			hold:  intent.FollowHold{Paused: &intent.Actor{By: "ida", Reason: "the fair"}},
			waits: "waits: ida paused promotions: the fair", want: promote.Hold{Held: true},
		},
	} {
		gates := promote.Judge(test.policy, test.deployed, test.hold, test.approved, noon)
		if got := promote.Held(gates); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if got := promote.Waits(intent.Promotion{Gates: gates}); got != test.waits {
			t.Errorf("%s: %q, want %q", name, got, test.waits)
		}
	}
}

// What is deployed can be promoted unless no single, unblocked commit gives it.
func TestWhatCannotBePromoted(t *testing.T) {
	t.Parallel()
	commit := intent.Provenance{Commit: "0123456789abcdef"}
	partial := commit
	partial.PartialBase = 3
	for why, f := range map[string]intent.Followed{
		"":                                   {Version: 4, Provenance: commit},
		"nothing is deployed in staging":     {},
		"version 4 of staging was made of":   {Version: 4},
		"version 4 of staging is a partial":  {Version: 4, Provenance: partial},
		"0123456 is blocked in staging: ida": {Version: 4, Provenance: commit, Blocked: &intent.Block{By: "ida"}},
	} {
		if got := promote.Unfit(f, "staging"); !strings.HasPrefix(got, why) || (got == "") != (why == "") {
			t.Errorf("%q, want %q", got, why)
		}
	}
}

// An environment follows another one of its project and repository, and never itself.
func TestSource(t *testing.T) {
	t.Parallel()
	project := uuid.New()
	environment := func(name, follows string) intent.Environment {
		return intent.Environment{
			ID: uuid.New(), ProjectID: project, Name: name, Source: intent.Source{URL: "/repo"},
			Settings: map[string]any{"follow": follows},
		}
	}
	other := environment("other", "")
	other.ProjectID = uuid.New()
	elsewhere := environment("elsewhere", "")
	elsewhere.Source.URL = "/another"
	all := []intent.Environment{
		environment("staging", ""), environment("production", "staging"), environment("a", "b"), environment("b", "a"),
		environment("narcissus", "narcissus"), environment("lost", "nowhere"), environment("stranger", "other"),
		environment("misfit", "elsewhere"), other, elsewhere,
	}
	for follower, want := range map[string]string{
		"staging": "", "production": "", "a": "a circle: a follows b follows a", "narcissus": "cannot follow itself",
		"lost": "there is no environment nowhere", "stranger": "is not of the project", "misfit": "of another " +
			"repository",
	} {
		for _, e := range all {
			if e.Name != follower {
				continue
			}
			source, err := promote.Source(all, e)
			switch {
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %v, want %q", follower, err, want)
			case want == "" && err != nil:
				t.Errorf("%s: %v", follower, err)
			case follower == "production" && (source == nil || source.Name != "staging"):
				t.Errorf("production follows %v", source)
			}
		}
	}
}
