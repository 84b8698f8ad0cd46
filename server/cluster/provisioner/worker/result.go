package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// Limits of what a plug-in returns beside its facts.
const (
	addressesMax = 32
	nameMax      = 255
)

// checkResult checks what a plug-in returned, so that one bad result does not spoil a request with many.
func checkResult(r plugin.Result) error {
	if len(r.Hostname) > nameMax || !utf8.ValidString(r.Hostname) {
		return fmt.Errorf("the plug-in returned a host name that is too long, or not in UTF-8")
	}
	if len(r.Addresses) > addressesMax {
		return fmt.Errorf(
			"the plug-in returned %d addresses, and a machine has %d at most",
			len(r.Addresses),
			addressesMax,
		)
	}
	for name, address := range r.Addresses {
		if len(name) > nameMax || len(address) > nameMax || !utf8.ValidString(name+address) {
			return fmt.Errorf("the plug-in returned an address that is too long, or not in UTF-8")
		}
	}
	for _, fields := range []task.Fields{r.Facts, r.Secret} {
		size := 0
		for name, value := range fields {
			if !json.Valid(value) {
				return fmt.Errorf("the plug-in returned %q with a value that is not JSON", name)
			}
			size += len(name) + len(value)
		}
		if size > task.MaxFacts {
			return fmt.Errorf(
				"the plug-in returned facts of %d KiB, and %d KiB is the limit",
				size>>10,
				task.MaxFacts>>10,
			)
		}
	}
	return nil
}

// afterFailure returns what is kept of an attempt that failed: the facts of a provider, since there may be a machine
// all the same.
func afterFailure(t task.Task, learned plugin.Result) plugin.Result {
	kept := plugin.Result{Facts: learned.Facts}
	if !t.Action.OfProvider() || checkResult(kept) != nil {
		return plugin.Result{}
	}
	return kept
}

// clean makes a text storable and fit for JSON.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// cutProblem cuts a text that is too long in its middle, because the beginning says what was tried and the end what
// went wrong.
func cutProblem(text string) string {
	if len(text) <= task.MaxProblem {
		return text
	}
	const gap = "\n…\n"
	half := (task.MaxProblem - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}
