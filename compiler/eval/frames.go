package eval

import (
	"regexp"
	"strconv"
	"strings"

	"sync"

	"ordain.dev/ordain/internal/diag"
)

var frameLine = sync.OnceValue(
	func() *regexp.Regexp { return regexp.MustCompile(`^  File "(.*)", line (\d+)(?:, in (.*))?$`) },
)

// frames reads what Python prints of a stack, and keeps what stands in
// plug-ins. Of a deep recursion both ends are kept.
func frames(trace string) []diag.Frame {
	const ends = 5
	var list []diag.Frame
	skip := false
	for line := range strings.SplitSeq(trace, "\n") {
		if m := frameLine().FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[2])
			if skip = !ofPlugin(m[1]); skip {
				continue
			}
			list = append(list, diag.Frame{Location: diag.Location{File: m[1], Line: n}, Function: m[3]})
			continue
		}
		if skip {
			continue
		}
		if source := strings.TrimSpace(line); source != "" && len(list) > 0 && list[len(list)-1].Source == "" &&
			strings.Trim(source, "^~ ") != "" {
			list[len(list)-1].Source = source
		}
	}
	if len(list) > 2*ends {
		list = append(list[:ends:ends], list[len(list)-ends:]...)
	}
	return list
}

// ofPlugin tells the files of modules from those of Python's libraries.
func ofPlugin(path string) bool {
	path = strings.ReplaceAll(path, "\\", "/")
	return strings.Contains(path, "/inmanta_plugins/") || strings.Contains(path, "/plugins/") ||
		!strings.Contains(path, "/lib/python")
}
