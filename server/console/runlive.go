package console

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// followed is how much of the output of a stage a page shows while the stage runs. All of it is sent again after every
// piece that the stage prints, so it is less than what a finished run shows.
const followed = 8 << 10

// follow returns the end of what a running stage has printed.
func follow(stage intent.Stage) (output, errors string, cut bool) {
	output, cutOut := lastOf(stage.Output, followed)
	errors, cutErr := lastOf(stage.ErrOutput, followed)
	return output, errors, cutOut || cutErr
}

// lastOf keeps at most n bytes of the end of a text, from the beginning of a line on where there is one.
func lastOf(text string, n int) (string, bool) {
	text = strings.TrimRight(text, "\n")
	if len(text) <= n {
		return text, false
	}
	text = text[len(text)-n:]
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return strings.ToValidUTF8(text, ""), true
}

// waitsFor says in the first step of a run for what it waits.
func (s *step) waitsFor(env intent.EnvironmentID, w *intent.Wait) {
	s.State = state{"waiting", "waits for " + w.Text}
	if w.Run != nil {
		s.Link, s.Text = runURL(env, *w.Run), "See that run"
	}
}

// doCancelRun cancels a run that waits or is under way.
func (c *console) doCancelRun(r *http.Request, e intent.Environment) (string, error) {
	id, err := uuid.Parse(r.PathValue("run"))
	if err != nil {
		return "", fault.New("console.doCancelRun", fault.NotFound, "there is no run "+r.PathValue("run"))
	}
	return runURL(e.ID, id) + "?done=runcancelled", c.control.CancelCompile(asPerson(r), e.ID, id)
}
