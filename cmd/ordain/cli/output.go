package cli

import (
	"io"
	"sync"
)

// output is a command's standard output. It remembers the first error of
// writing, so that a command whose output was lost fails even where its code
// did not look at the error of each line that it printed.
type output struct {
	io.Writer

	mu  sync.Mutex
	err error
}

// Write writes to the standard output and keeps the first error.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
	return n, err
}

// lost returns the first error of writing, or nil.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
