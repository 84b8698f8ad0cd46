package cli

import (
	"fmt"
	"io"
	"sync"
)

// livePrinter prints what plug-ins print at once, so that a reader of the server's record can follow a compile:
//
//	plug-in ──line──▶ livePrinter ──▶ standard output      while the compile runs
//	document.Output ──rest──▶ the lines that were not printed yet, at its end
//
// A worker that is the copy of a template may have printed lines before the compile began; they are among the rest.
type livePrinter struct {
	mu      sync.Mutex
	out     io.Writer
	printed map[string]int // how often each line was printed
}

func newLivePrinter(out io.Writer) *livePrinter {
	return &livePrinter{out: out, printed: map[string]int{}}
}

// line prints one line.
func (p *livePrinter) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printed[text]++
	fmt.Fprintln(p.out, text)
}

// rest returns the lines that were not printed yet; all of them if p is nil.
func (p *livePrinter) rest(lines []string) []string {
	if p == nil {
		return lines
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var rest []string
	for _, text := range lines {
		if p.printed[text] > 0 {
			p.printed[text]--
			continue
		}
		rest = append(rest, text)
	}
	return rest
}
