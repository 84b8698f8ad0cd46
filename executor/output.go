package executor

import (
	"log/slog"
	"strings"
	"time"
)

// In each floodWindow a process can print this many lines and bytes into the log.
const (
	floodWindow = 10 * time.Second
	floodLines  = 1000
	floodBytes  = 256 << 10
)

// output logs what a process prints outside of its tasks. One goroutine at a
// time uses it, and the last one calls flush.
type output struct {
	log     *slog.Logger
	masks   *strings.Replacer // hides secrets; may be nil
	since   time.Time
	lines   int
	bytes   int
	dropped int
}

func (o *output) line(stream, line string) {
	if now := time.Now(); now.Sub(o.since) > floodWindow {
		o.flush()
		o.since, o.lines, o.bytes = now, 0, 0
	}
	o.lines++
	if o.bytes += len(line); o.lines > floodLines || o.bytes > floodBytes {
		o.dropped++
		return
	}
	if o.masks != nil {
		line = o.masks.Replace(line)
	}
	o.log.Info(line, "stream", stream)
}

// flush logs how many lines were left out.
func (o *output) flush() {
	if o.dropped > 0 {
		o.log.Warn("an executor prints too much, so lines are left out", "lines", o.dropped)
		o.dropped = 0
	}
}
