package puppet

import (
	"bytes"
	"io"
	"strings"
)

// log reads the output of Puppet on its way, and keeps the last errors of it.
type log struct {
	out    io.Writer
	line   []byte
	errors []string
}

const (
	maxLine   = 1000 // bytes
	maxErrors = 8
)

func (l *log) Write(p []byte) (int, error) {
	if l.out != nil {
		_, _ = l.out.Write(p)
	}
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), maxLine-len(l.line))]...)
		if whole {
			l.flush()
		}
		rest = after
	}
	return len(p), nil
}

// flush reads the line that has been written so far.
func (l *log) flush() {
	line := strings.ToValidUTF8(strings.TrimSpace(string(l.line)), "")
	l.line = l.line[:0]
	if text, is := strings.CutPrefix(line, "Error: "); is {
		l.errors = append(l.errors, text)
		l.errors = l.errors[max(0, len(l.errors)-maxErrors):]
	}
}
