package plugin

import "strings"

// moduleFrames reduces what faulthandler prints to the frames of modules, because those of the
// runtime mean nothing to their authors.
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

// withoutStacks passes on what the worker prints, except for the stack that a worker prints when it
// takes too long: the error has that.
func (h *Host) withoutStacks(print func(stream, line string)) func(stream, line string) {
	if print == nil {
		return nil
	}
	return func(stream, line string) {
		if h.stackRequested.Load() && (isThread(line) || isFrame(line)) {
			return
		}
		print(stream, line)
	}
}
