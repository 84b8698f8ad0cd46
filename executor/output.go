package executor

import (
	"log/slog"
	"time"
)

// floodWindow and floodLines bound what a process can print into the log.
const (
	floodWindow = 10 * time.Second
	floodLines  = 1000
)

// output puts what a process prints outside of any task into the log. It is
// for one goroutine at a time.
type output struct {
	log     *slog.Logger
	since   time.Time
	lines   int
	dropped int
}

func (o *output) line(stream, line string) {
	if now := time.Now(); now.Sub(o.since) > floodWindow {
		o.flush()
		o.since, o.lines = now, 0
	}
	if o.lines++; o.lines > floodLines {
		o.dropped++
		return
	}
	o.log.Info(line, "stream", stream)
}

// flush tells how much was left out.
func (o *output) flush() {
	if o.dropped > 0 {
		o.log.Warn("an executor prints too much; lines are left out", "lines", o.dropped)
		o.dropped = 0
	}
}
