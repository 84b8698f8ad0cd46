package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// narrator prints what happens, each line with the seconds since the chapter began.
type narrator struct {
	out   io.Writer
	began time.Time
	count int
}

// chapter begins a new chapter.
func (n *narrator) chapter(title string) {
	n.count++
	n.began = time.Now()
	fmt.Fprintf(n.out, "\n%d. %s\n", n.count, title)
}

// say prints one thing that has just happened.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "   %7.3f s  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// took prints a step and how long it took.
func (n *narrator) took(what string, d time.Duration) {
	n.say("%-34s %8s", what, d.Round(time.Millisecond))
}

// quote prints a text, indented.
func (n *narrator) quote(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(n.out, "             │ %s\n", strings.TrimRight(line, "\n"))
	}
}
