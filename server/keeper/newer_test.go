package keeper

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// A run is cancelled for a commit that came, when commits brought about all that it
// answers; never what a person waits for, and not before it has a commit.
func TestWhatANewerCommitCancels(t *testing.T) {
	t.Parallel()
	now := time.Now()
	run, waiting := uuid.New(), uuid.New()
	request := func(id uuid.UUID, kind string, change func(*intent.Compile)) intent.Compile {
		c := intent.Compile{ID: id, Update: true, Export: true, Trigger: intent.Trigger{Type: kind}}
		if change != nil {
			change(&c)
		}
		return c
	}
	runs := func(c *intent.Compile) { c.Started, c.Revision = &now, &intent.Revision{Commit: "c1"} }
	answered := func(c *intent.Compile) { c.Started, c.Substitute = &now, &run }
	for name, test := range map[string]struct {
		open []intent.Compile
		want bool
	}{
		"a newer commit": {[]intent.Compile{request(run, "poll", runs), request(waiting, "webhook", nil)},
			true},
		"nothing waits": {[]intent.Compile{request(run, "poll", runs)}, false},
		"a person asked for more": {[]intent.Compile{request(run, "poll", runs), request(waiting, "console", nil)},
			false},
		"a person waits for the run": {[]intent.Compile{request(run, "poll", runs), request(uuid.New(), "console",
			answered), request(waiting, "webhook", nil)}, false},
		"another commit is answered": {[]intent.Compile{request(run, "poll", runs), request(uuid.New(), "webhook",
			answered), request(waiting, "webhook", nil)}, true},
		"it has no commit yet": {[]intent.Compile{request(run, "poll",
			func(c *intent.Compile) { c.Started = &now }), request(waiting, "webhook", nil)}, false},
		"with variables of its own": {[]intent.Compile{request(run, "poll", runs), request(waiting, "webhook",
			func(c *intent.Compile) { c.Variables = map[string]string{"a": "b"} })}, false},
	} {
		if by := newer(test.open, run); (by != nil) != test.want || by != nil && by.ID != waiting {
			t.Errorf("%s: %+v", name, by)
		}
	}
}
