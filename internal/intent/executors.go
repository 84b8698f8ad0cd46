package intent

import "time"

// Executors is what runs the handlers of an environment, and what that takes on disk.
type Executors struct {
	// Here says whether this server runs them: not while another one has the
	// environment, or while it starts. Without it nothing else is known.
	Here      bool
	Processes []ExecutorProcess // oldest first
	Folders   []ExecutorFolder  // used last first
	Disk      int64             // bytes of all folders; what several of them link to counts once
	DiskMax   int64             // the most that they may take; 0: no limit
}

// ExecutorProcess is a running process.
type ExecutorProcess struct {
	Blueprint string   // hash
	Venv      string   // hash of its virtual environment
	Modules   []string // whose handlers it has
	PID       int
	RSS       int64 // bytes
	Running   int   // tasks
	Agents    int   // that have a thread, a cache and connections in it
	Started   time.Time
	IdleSince time.Time // zero while a task runs
	Ending    bool      // it finishes what it has and takes nothing more
}

// ExecutorFolder is a virtual environment, or the sources of handlers.
type ExecutorFolder struct {
	Kind     string // venv or code
	Hash     string
	Size     int64 // bytes
	Alone    int64 // of them, those that no other folder links to: what removing it gives back
	LastUsed time.Time
	InUse    bool
}
