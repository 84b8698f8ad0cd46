package plugin

import "strings"

// moduleFrames cuts what faulthandler prints down to the frames of modules:
// the runtime's own say nothing to their authors.
func moduleFrames(words, runtime string) string {
	var kept []string
	for line := range strings.Lines(words) {
		line = strings.TrimRight(line, "\n")
		if isFrame(line) && !strings.HasPrefix(line, `  File "`+runtime+"/") && !strings.Contains(line, "<frozen") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func isFrame(line string) bool { return strings.HasPrefix(line, `  File "`) }

func isThread(line string) bool {
	return strings.HasSuffix(line, "(most recent call first):") &&
		(strings.HasPrefix(line, "Current thread ") || strings.HasPrefix(line, "Thread "))
}

// withoutStacks passes on what the worker prints, but for the stacks that were
// asked of one that takes too long: the error tells them.
func (h *Host) withoutStacks(print func(stream, line string)) func(stream, line string) {
	if print == nil {
		return nil
	}
	return func(stream, line string) {
		if h.asked.Load() && (isThread(line) || isFrame(line)) {
			return
		}
		print(stream, line)
	}
}
