package intent

import "time"

// Executors describes the processes that run the handlers of an environment, and
// their folders on disk.
type Executors struct {
	// Here reports whether this server runs them. If another server has the
	// environment, or it is starting, the other fields are empty.
	Here      bool
	Processes []ExecutorProcess // oldest first
	Folders   []ExecutorFolder  // most recently used first
	Disk      int64             // bytes of all folders; files that several of them share count once
	DiskMax   int64             // the most that they may take; 0: no limit
	// Separation says how the environment's code is kept away from the server and other environments.
	Separation string
}

// ExecutorProcess is a running process.
type ExecutorProcess struct {
	Blueprint string   // hash
	Venv      string   // hash of its virtual environment
	Modules   []string // the modules whose handlers it has loaded
	PID       int
	RSS       int64 // bytes
	Running   int   // tasks
	Agents    int   // agents that have a thread, a cache and connections in it
	Started   time.Time
	IdleSince time.Time // zero while a task runs
	Ending    bool      // it finishes its tasks and takes no more
}

// ExecutorFolder is a virtual environment, or the sources of handlers.
type ExecutorFolder struct {
	Kind     string // venv or code
	Hash     string
	Size     int64 // bytes
	Alone    int64 // the bytes that removing the folder would free, since no other folder shares them
	LastUsed time.Time
	InUse    bool
}
