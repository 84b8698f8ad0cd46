package console

import (
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// Commands in messages stand between backticks; pages show them as code. What is no pair is left alone.
func TestBackticksBecomeCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "[]",
		"plain":                        "[{plain false}]",
		"unblock it with `ordain git`": "[{unblock it with  false} {ordain git true}]",
		"`a` and `b`.":                 "[{a true} { and  false} {b true} {. false}]",
		"a ` alone":                    "[{a ` alone false}]",
		"``` and ``":                   "[{``` and `` false}]",
		"one ` here\nand `two` there":  "[{one ` here\nand  false} {two true} { there false}]",
	} {
		if got := fmt.Sprint(codeParts(text)); got != want {
			t.Errorf("%q becomes %s", text, got)
		}
	}
	r, h := rich(t)
	must(t, r.Store.Notify(t.Context(), r.Production.ID, intent.Notice{
		Severity: intent.SeverityWarning, Title: "A version is held", Message: "run `ordain version <confirm>` then",
	}))
	page := get(t, h, envURL(r.Production.ID)+"/notifications").Body.String()
	contains(t, page, "run <code>ordain version &lt;confirm&gt;</code> then")
	if strings.Contains(page, "`") {
		t.Error("there are backticks on the page")
	}
}
