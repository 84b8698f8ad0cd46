package worker

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"time"

	"ordain.dev/ordain/internal/isolation"
)

// ProtocolVersion is the version that a worker must announce in its hello.
const ProtocolVersion = 1

// Config describes the worker to start.
type Config struct {
	Python     string   // interpreter, such as that of a virtual environment
	Role       string   // compile, handler or template
	RuntimeDir string   // from runtime.Unpack
	Path       []string // folders that follow the runtime at the front of sys.path
	Dir        string   // working directory
	Env        []string // the whole environment; if empty, MinimalEnv
	MemoryMax  uint64   // bytes of address space; 0: no limit
	DataMax    uint64   // bytes of data without the stacks of agents (handler role); 0: no limit
	FileMax    uint64   // bytes of the largest file that the worker may write; 0: no limit
	Tasks      int      // processes and threads that the user may have more than now; not for root; 0: no limit
	// Mark identifies the worker and all processes that it starts, even those that
	// leave its process group. They are killed after the worker has ended. If it is
	// empty, only the process group is killed.
	Mark     string
	Handover *os.File // the template's end of HandoverPair
	// Confine, if set, changes a command so that it starts confined; see isolation.Support.Command. After
	// the end of the worker, everything is killed that was confined with it, unless KeepOthers is set, and
	// Ended is called.
	Confine    func(cmd *exec.Cmd) (started func() (*isolation.Space, error), err error)
	KeepOthers bool
	Ended      func()
	// Bytecode is the folder for bytecode that cannot be written beside its source; if it is empty, it
	// is beside RuntimeDir.
	Bytecode string
	// TasksAlone says that the kernel counts the tasks of this worker alone, so Tasks is the whole limit,
	// to which the threads of agents are added.
	TasksAlone bool
	// OnOutput is called with every line that the code prints. stream is "stdout" or "stderr".
	OnOutput func(stream, line string)
	// OnNotice is called with the notices that arrive in a dialogue while Ask or
	// Result waits for something else, in the goroutine of their caller.
	OnNotice func(op string, args json.RawMessage)
}

// Failure is an error that the other side reported, such as an exception of Python.
type Failure struct {
	Kind    string `json:"kind"`
	Class   string `json:"class"`
	Message string `json:"message"`
	Trace   string `json:"trace"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// Error returns class and message.
func (f *Failure) Error() string {
	if f.Class == "" {
		return f.Message
	}
	return f.Class + ": " + f.Message
}

// Handler answers a request of the worker. Its value is marshalled as the reply. A
// *Failure is sent back as it is.
type Handler func(op string, args json.RawMessage) (any, error)

// Dialogue is a strictly nested conversation with a worker of the compile role. It
// is for one goroutine.
type Dialogue interface {
	// Ask sends a request and waits for its reply, which it decodes into reply unless
	// that is nil. Meanwhile answer answers the worker's own requests.
	Ask(ctx context.Context, op string, args, reply any, answer Handler) error
	// Post sends a request whose results arrive as notices before its reply. Ask may
	// not be called until Result reports that there are no more of them.
	Post(ctx context.Context, op string, args any) error
	// Result waits for the next of these notices, as Ask does for a reply. It returns
	// false when the reply has arrived instead.
	Result(ctx context.Context, into any, answer Handler) (bool, error)
	// HasResult reports whether the next of these notices has arrived already.
	HasResult() bool
	// Close asks the worker to end, and kills it after grace.
	Close(grace time.Duration) error
	// LastWords returns the last lines of output, to explain why a worker died.
	LastWords() string
	// RSS returns the resident memory in bytes.
	RSS() int64
	// EndOthers kills all other processes that are confined with the worker.
	EndOthers()
	// Done is closed when the worker has ended.
	Done() <-chan struct{}
}

// Errand is a request of a Session.
type Errand struct {
	Op   string
	Args any
	// Behind marks a request that is sent while the one before it still runs. It can be taken back until it begins.
	Behind bool
	// Answer answers the worker's requests that belong to this one, one at a time, in a goroutine of its own.
	Answer Handler
	// Notice is called with the notices that belong to this request. Done is called once, with the reply or with
	// the error that the worker returned or with which it ended. Neither may wait for anything, because they are
	// called where all replies are read.
	Notice func(op string, args json.RawMessage)
	Done   func(reply json.RawMessage, err error)
}

// Session is a conversation of many concurrent requests with a worker of the handler
// role. It is safe for concurrent use.
type Session interface {
	// Post sends a request and returns its number. Requests are sent in the order of the calls of Post, which does not
	// wait, not even for a worker that does not read. When it returns an error, Done is not called.
	Post(e Errand) (int64, error)
	// Forget drops a request: whatever arrives for it is ignored, and Done is not called.
	Forget(request int64)
	// Call sends a request and waits for its reply, as long as ctx lasts.
	Call(
		ctx context.Context,
		op string,
		args, reply any,
		answer Handler,
		notice func(op string, args json.RawMessage),
	) error
	// Done is closed when the worker has ended. Err then returns how.
	Done() <-chan struct{}
	Err() error
	// PID returns the id of the process, which leads a process group of its own.
	PID() int
	// RSS returns the resident memory in bytes.
	RSS() int64
	// Close asks the worker to end, and kills it after grace.
	Close(grace time.Duration) error
	// Kill kills the worker and waits for its end.
	Kill()
	// LastWords returns the last lines of output.
	LastWords() string
}
