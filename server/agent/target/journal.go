package target

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/agent/trust"
)

// The journal is a file to which a line is added for each command that arrives, before it starts, and for each answer
// that the server has recorded:
//
//	{"c":"<id>","s":18}    a command
//	{"r":"<id>"}           its answer is recorded
//	{"s":18}               the highest seq of lines that were left out when the file was written again
//
// Lines that come at the same time are written and synchronized together. The answers are files of their own. So
// after a crash it is known what ran: a command without an answer was cut off.

const (
	// knownRecorded is how many commands are remembered whose answers are recorded.
	knownRecorded = 4096
	// journalMax is the size at which the file is written again.
	journalMax = 4 << 20
)

type journalLine struct {
	Command  string `json:"c,omitempty"`
	Seq      int64  `json:"s,omitempty"`
	Recorded string `json:"r,omitempty"`
}

// journal is safe for concurrent use.
type journal struct {
	path string

	mu      sync.Mutex
	file    *os.File
	size    int64
	seen    int64
	open    []string // commands without a recorded answer, in order
	closed  []string // the last ones with one, in order
	waiting []journalEntry
	wake    chan struct{}
	done    chan struct{}
	ended   bool  // close was called
	err     error // the disk failed, or the journal is closed; nothing is started any more
}

type journalEntry struct {
	line    journalLine
	written func(error)
}

func openJournal(path string) (*journal, error) {
	j := &journal{path: path, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := j.read(); err != nil {
		return nil, err
	}
	if err := j.rewrite(); err != nil {
		return nil, err
	}
	go j.write()
	return j, nil
}

func (j *journal) read() error {
	f, err := os.Open(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Disk("target.journal", j.path, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l journalLine
		if json.Unmarshal(lines.Bytes(), &l) == nil { // the last line may be cut off
			j.apply(l)
		}
	}
	if err := lines.Err(); err != nil {
		return fault.Disk("target.journal", j.path, err)
	}
	return nil
}

func (j *journal) apply(l journalLine) {
	j.seen = max(j.seen, l.Seq)
	if l.Command != "" {
		j.open = append(j.open, l.Command)
	}
	if l.Recorded != "" {
		if at := slices.Index(j.open, l.Recorded); at >= 0 {
			j.open = slices.Delete(j.open, at, at+1)
		}
		if j.closed = append(j.closed, l.Recorded); len(j.closed) > 2*knownRecorded {
			j.closed = slices.Clone(j.closed[len(j.closed)-knownRecorded:])
		}
	}
}

// rewrite writes the file again, with what counts.
func (j *journal) rewrite() error {
	lines := []journalLine{{Seq: j.seen}}
	for _, id := range j.open {
		lines = append(lines, journalLine{Command: id})
	}
	for _, id := range j.closed[max(0, len(j.closed)-knownRecorded):] {
		lines = append(lines, journalLine{Recorded: id})
	}
	var text []byte
	for _, l := range lines {
		text = append(append(text, encodeLine(l)...), '\n')
	}
	if err := trust.WriteFile(j.path, text); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fault.Disk("target.journal", j.path, err)
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.size = f, int64(len(text))
	return nil
}

func encodeLine(l journalLine) []byte {
	text, err := json.Marshal(l)
	if err != nil {
		panic("target: a line of the journal is plain data: " + err.Error())
	}
	return text
}

// add adds a line and calls written when it is on the disk. It does not wait.
func (j *journal) add(l journalLine, written func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		go written(errEnded)
		return
	}
	j.waiting = append(j.waiting, journalEntry{l, written})
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// write writes what add collects until close.
func (j *journal) write() {
	defer close(j.done)
	for range j.wake {
		j.flush()
	}
}

func (j *journal) flush() {
	j.mu.Lock()
	entries, err := j.waiting, j.err
	j.waiting = nil
	var text []byte
	for _, e := range entries {
		text = append(append(text, encodeLine(e.line)...), '\n')
	}
	f := j.file
	j.mu.Unlock()
	if len(entries) == 0 {
		return
	}
	if err == nil {
		if _, err = f.Write(text); err == nil {
			err = syncData(f)
		}
		if err != nil {
			err = fault.Disk("target.journal", j.path, err)
		}
	}
	j.mu.Lock()
	if err == nil {
		j.size += int64(len(text))
		for _, e := range entries {
			j.apply(e.line)
		}
		if j.size > journalMax {
			err = j.rewrite()
		}
	}
	j.err = err
	j.mu.Unlock()
	for _, e := range entries {
		e.written(err)
	}
}

// known returns what the journal has: the commands without a recorded answer and those with one.
func (j *journal) known() (open, recorded []string, seen int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.open), slices.Clone(j.closed), j.seen
}

var errEnded = errors.New("the agent ends")

// close writes what is left and closes the file.
func (j *journal) close() {
	j.mu.Lock()
	if j.ended {
		j.mu.Unlock()
		return
	}
	j.ended = true
	close(j.wake)
	j.mu.Unlock()
	<-j.done
	j.flush()
	_ = j.file.Close()
}

func syncData(f *os.File) error { return f.Sync() }
