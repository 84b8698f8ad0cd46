package executor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// blame says whose handler ended a process that many agents share.
type blame struct {
	by      intent.ResourceID   // zero if that is not known
	how     string              // the call that ended the process, if there was one
	running []intent.ResourceID // whose handlers ran
}

// crashed finds the thread in what Python prints about a crash in C code; see lastwill.py.
var crashed = regexp.MustCompile(`(?m)^  File "<ordain>", line \d+ in thread_([0-9a-f]+)$`)

// noteEnd takes what a process says of its threads, and of a handler that is about to end it.
func (r *taskRun) noteEnd(args json.RawMessage) {
	var said struct {
		Number string `json:"number"`
		Call   string `json:"call"`
	}
	const longest = 100
	if json.Unmarshal(args, &said) != nil || len(said.Number) > longest || len(said.Call) > longest {
		return
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if said.Number != "" {
		if r.seat.threads == nil {
			r.seat.threads = map[int]string{}
		}
		r.seat.threads[r.lane] = said.Number
	}
	if said.Call != "" {
		r.process.ender, r.process.enderCall = r, said.Call
	}
}

// blameFor finds out whose handler ended a process, from what it said before and from its last words.
// It does so when the first of its tasks ends, while all others are still there. The caller holds mu.
func (m *Manager) blameFor(w *process, words string) *blame {
	if w.blame != nil {
		return w.blame
	}
	b := &blame{}
	thread := ""
	if found := crashed.FindStringSubmatch(words); found != nil {
		thread = found[1]
	}
	for _, s := range w.executor.seats {
		for _, r := range s.sent {
			if r.process != w || !r.begun {
				continue
			}
			id := r.task.Resource.ID
			b.running = append(b.running, id)
			switch {
			case r == w.ender:
				b.by, b.how = id, w.enderCall
			case w.ender == nil && thread != "" && s.threads[r.lane] == thread:
				b.by, b.how = id, "a crash in its thread"
			}
		}
	}
	if len(b.running) == 1 {
		b.by = b.running[0]
	}
	slices.SortFunc(b.running, func(a, b intent.ResourceID) int { return strings.Compare(a.String(), b.String()) })
	w.blame = b
	return b
}

// namedMost is how many resources a message names.
const namedMost = 5

// describe says it to people who look at the resource of a task.
func (b *blame) describe(r *taskRun) string {
	own := r.task.Resource.ID
	how := ""
	if b.how != "" {
		how = " (" + b.how + ")"
	}
	switch {
	case b.by == own:
		return ". It was the handler of this resource that ended it" + how
	case !b.by.IsZero():
		return fmt.Sprintf(". It was the handler of %s that ended it%s: the resources share the process", b.by, how)
	}
	others := slices.DeleteFunc(slices.Clone(b.running), func(id intent.ResourceID) bool { return id == own })
	if len(others) == 0 {
		return ""
	}
	var names []string
	for _, id := range others[:min(len(others), namedMost)] {
		names = append(names, id.String())
	}
	list := strings.Join(names, ", ")
	if more := len(others) - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return ". Whose handler ended it is not known: those of " + list + " ran in the same process"
}
