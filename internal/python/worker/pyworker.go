package worker

import (
	"context"
	"encoding/json"
	"os"
	"time"
)

// ProtocolVersion is what hello must carry.
const ProtocolVersion = 1

// Config says which worker to start.
type Config struct {
	Python     string   // interpreter: of a virtual environment, or any
	Role       string   // compile, handler or template
	RuntimeDir string   // from runtime.Unpack
	Path       []string // folders put at the front of sys.path, in order, after the runtime
	Dir        string   // working directory
	Env        []string // the whole environment; empty means a minimal one (PATH, HOME, LANG)
	MemoryMax  uint64   // bytes of address space; 0: no limit
	DataMax    uint64   // bytes of data beside the stacks of agents (handler role); 0: no limit
	FileMax    uint64   // bytes of the largest file that it may write; 0: no limit
	Tasks      int      // processes and threads that it may have together with all others of its user, root's excepted; 0: no limit
	// Mark names the worker and all that it starts, however far that moves away.
	// What bears it is ended after the worker. Empty: only its process group is.
	Mark     string
	Handover *os.File // for a template: where it is sent descriptors to copy itself for
	// OnOutput gets every line that the code prints; stream is "stdout" or "stderr".
	OnOutput func(stream, line string)
	// OnNotice gets the notices of a dialogue that nobody waits for, while Ask or
	// Result waits for something else, in the goroutine of its caller.
	OnNotice func(op string, args json.RawMessage)
}

// Failure is an error that the other side sent, or that Python raised.
type Failure struct {
	Kind    string `json:"kind"`
	Class   string `json:"class"`
	Message string `json:"message"`
	Trace   string `json:"trace"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// Error gives class and message.
func (f *Failure) Error() string {
	if f.Class == "" {
		return f.Message
	}
	return f.Class + ": " + f.Message
}

// Handler answers a request that Python sends while we wait; the value is
// marshalled as the reply. A *Failure goes back as it is.
type Handler func(op string, args json.RawMessage) (any, error)

// Dialogue is a strictly nested conversation with a worker (compile role).
// It is for one goroutine.
type Dialogue interface {
	// Ask sends a request and answers the worker's own requests with answer
	// until the reply comes, which is decoded into reply (nil: dropped).
	Ask(ctx context.Context, op string, args, reply any, answer Handler) error
	// Post sends a request that gives its results as notices, one by one, before
	// its reply. Nothing may be asked until Result says that there are no more.
	Post(ctx context.Context, op string, args any) error
	// Result waits for the next of these notices, as Ask does for a reply. It
	// reports false when the reply came instead.
	Result(ctx context.Context, into any, answer Handler) (bool, error)
	// Came reports whether the next of these notices is there already.
	Came() bool
	// Close asks the worker to end, and kills it after grace.
	Close(grace time.Duration) error
	// LastWords are the last lines of output, for a worker that died.
	LastWords() string
	// RSS is the resident memory in bytes now; Done is closed when the worker has ended.
	RSS() int64
	Done() <-chan struct{}
}

// Errand is a request of a Session whose reply goes to a function.
type Errand struct {
	Op   string
	Args any
	// Behind: it was sent before its turn, and can be taken back until it begins.
	Behind bool
	// Answer takes requests back that carry "for" of this one, one at a time, in a goroutine of its own.
	Answer Handler
	// Notice takes notices that do, and Done, once, the reply, or how the worker refused or ended. Both are called
	// where all replies are read: they must not wait for anything.
	Notice func(op string, args json.RawMessage)
	Done   func(reply json.RawMessage, err error)
}

// Session is a conversation with many requests at a time (handler role).
// It is safe for concurrent use.
type Session interface {
	// Post sends a request and returns its number. Requests are sent in the order of the calls of Post, which does not
	// wait, not even for a worker that does not read. When it returns an error, Done is not called.
	Post(e Errand) (int64, error)
	// Forget ends a request: what still comes for it goes nowhere, and Done is not called.
	Forget(request int64)
	// Call sends a request and waits for its reply, for as long as ctx lasts.
	Call(
		ctx context.Context,
		op string,
		args, reply any,
		answer Handler,
		notice func(op string, args json.RawMessage),
	) error
	// Done is closed when the worker has ended; Err then tells how.
	Done() <-chan struct{}
	Err() error
	// PID of the process, which leads a process group of its own.
	PID() int
	// RSS is the resident memory in bytes now.
	RSS() int64
	Close(grace time.Duration) error
	Kill()
	LastWords() string
}
