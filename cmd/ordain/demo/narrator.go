package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// narrator tells what happens, a line at a time, each with the seconds since
// the chapter began.
type narrator struct {
	out   io.Writer
	began time.Time
	count int
}

// chapter begins a new part of the story.
func (n *narrator) chapter(title string) {
	n.count++
	n.began = time.Now()
	fmt.Fprintf(n.out, "\n%d. %s\n", n.count, title)
}

// say tells one thing that just happened.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "   %7.3f s  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// took tells one thing with the time that it took itself.
func (n *narrator) took(what string, d time.Duration) {
	n.say("%-34s %8s", what, d.Round(time.Millisecond))
}

// quote shows a text as it is, set in.
func (n *narrator) quote(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(n.out, "             │ %s\n", strings.TrimRight(line, "\n"))
	}
}
