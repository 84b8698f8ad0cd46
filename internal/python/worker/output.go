package worker

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxLine  = 16 << 10 // longer lines of output are cut
	maxWords = 4 << 10  // bytes of output that are kept for the case that the worker dies
)

// readLines calls each for every line until the stream ends. It never needs more
// memory than maxLine, however long a line is.
func readLines(r io.Reader, each func(line string)) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		text := strings.TrimRight(string(line), "\r\n")
		for err == bufio.ErrBufferFull {
			var rest []byte
			if rest, err = in.ReadSlice('\n'); len(rest) > 0 && !strings.HasSuffix(text, cut) {
				text += cut
			}
		}
		if len(line) > 0 {
			each(strings.ToValidUTF8(text, string(utf8.RuneError)))
		}
		if err != nil {
			return
		}
	}
}

const cut = " … (cut)"

// ownFrame reports whether a line belongs to the stack that faulthandler prints
// when a worker crashes, and is about our own code, which does not help the authors
// of modules.
func ownFrame(line, runtime string) bool {
	file, is := strings.CutPrefix(line, `  File "`)
	return is && (runtime != "" && strings.HasPrefix(file, runtime+"/") || strings.HasPrefix(file, "<frozen importlib"))
}

// lastWords keeps the last lines of the output.
type lastWords struct {
	mu    sync.Mutex
	lines []string
	size  int
}

func (w *lastWords) add(line string) {
	if len(line) > maxWords {
		line = line[:maxWords]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	w.size += len(line) + 1
	drop := 0
	for w.size > maxWords && drop < len(w.lines)-1 {
		w.size -= len(w.lines[drop]) + 1
		drop++
	}
	w.lines = w.lines[drop:]
}

// String returns the lines.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ToValidUTF8(strings.Join(w.lines, "\n"), string(utf8.RuneError))
}
