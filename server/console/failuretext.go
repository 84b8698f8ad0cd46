package console

import (
	"regexp"
	"strings"
)

// remote matches how an executor quotes an exception of a handler: its representation, with line breaks escaped.
var remote = regexp.MustCompile(`RemoteException\((['"])(.*)['"]\)`)

// readable writes a failure for people: what went wrong in the first line, and the trace below it, with real line
// breaks.
func readable(text string) (first, trace string) {
	if m := remote.FindStringSubmatchIndex(text); m != nil {
		inner := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\'`, `'`, `\"`, `"`).Replace(text[m[4]:m[5]])
		text = text[:m[0]] + inner + text[m[1]:]
	}
	first, trace, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(first), strings.Trim(trace, "\n")
}
