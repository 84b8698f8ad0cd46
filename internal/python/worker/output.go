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
	maxWords = 4 << 10  // of output that is kept for a worker that dies
)

// readLines calls each for every line until the stream ends. A line of any
// length costs at most maxLine of memory.
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

// ownFrame reports whether a line is of the stack that faulthandler prints when
// a worker crashes, and about our own code: it says nothing to the authors of
// modules.
func ownFrame(line, runtime string) bool {
	file, is := strings.CutPrefix(line, `  File "`)
	return is && (runtime != "" && strings.HasPrefix(file, runtime+"/") || strings.HasPrefix(file, "<frozen importlib"))
}

// lastWords keeps the end of what was printed.
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

// String gives the lines that are left.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ToValidUTF8(strings.Join(w.lines, "\n"), string(utf8.RuneError))
}
