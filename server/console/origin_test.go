package console

import (
	"strings"
	"testing"
	"time"
)

// Git takes long to say who wrote a model. The page of a resource does not wait for it: it says that the author is
// being looked up, and the live page has the author as soon as Git has answered.
func TestAPageDoesNotWaitForTheAuthors(t *testing.T) {
	r, server := live(t)
	answer := make(chan struct{})
	r.Blaming = func(string) { <-answer }
	defer func() { // also when the test fails
		select {
		case <-answer:
		default:
			close(answer)
		}
	}()
	path := paths(r)["resource-failed"]
	begun := time.Now()
	page := get(t, server.Config.Handler, path).Body.String()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the page took %v", took)
	}
	if !strings.Contains(page, "main.cf:12</span> <span class=\"muted\">author being looked up</span>") ||
		strings.Contains(page, "Noor Haddad") {
		t.Errorf("the page does not say that the author is being looked up:\n%s", page)
	}
	l := listen(t, server, path+"&live=1")
	l.until(fragmentWith("desired", "author being looked up"))
	close(answer)
	l.until(fragmentWith("desired", "Noor Haddad"))
	if page := get(t, server.Config.Handler, path).Body.String(); strings.Contains(page, "being looked up") ||
		!strings.Contains(page, "Noor Haddad") {
		t.Error("the next visit does not name the author")
	}
}
