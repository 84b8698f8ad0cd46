// Package plugin is what a provisioner and its plug-ins agree on.
//
//	worker ── Call: task, files, where output goes ──▶ Provider or Automator ──▶ Result, or an error
//
// Providers make and delete machines, automators work on them, over SSH only.
// Package plugins lists those that are built in; package program runs others, in any
// language. Plug-ins are called from several goroutines at once, for different nodes.
package plugin

import (
	"context"
	"errors"
	"io"

	"ordain.dev/ordain/server/cluster/task"
)

// Call is one task for a plug-in.
type Call struct {
	task.Task
	// Out takes what the plug-in, and what it runs, prints. It keeps only the last of it, masks secrets, and never
	// blocks.
	Out io.Writer
	// Files returns where a resource of a type lies: the file, or the folder of an unpacked archive.
	Files Files
	// Work is an empty folder of this call that is removed after it.
	Work string
}

// Files finds resources of the plug-in that is called.
type Files interface {
	// Path returns the path of a resource, as ("ssh_keys", "team"). The error says which resources there are.
	Path(resourceType, name string) (string, error)
}

// Result is what a plug-in learned.
type Result struct {
	Hostname  string
	Addresses map[string]string
	Facts     task.Fields
	Secret    task.Fields // is sealed, and passed to later tasks of the node among its facts
}

// Provider makes machines. Every method may be called again after it was cut off at any moment, by this process or by
// another one: it goes by the tag of the call.
type Provider interface {
	// Create returns the machine with the tag, and makes it if there is none. It returns as soon as the provider has a
	// machine with an id; Confirm waits for it.
	Create(ctx context.Context, c Call) (Result, error)
	// Confirm waits until the machine can be reached over SSH, and returns its addresses and host keys.
	Confirm(ctx context.Context, c Call) (Result, error)
	// Delete deletes the machine with the tag, whether or not its id is among the facts. It is no error if there is
	// none any more. It returns once the provider says that the machine is gone or going.
	Delete(ctx context.Context, c Call) (Result, error)
}

// Automator works on machines.
type Automator interface {
	// Bootstrap prepares a machine for the automator. It changes nothing the second time.
	Bootstrap(ctx context.Context, c Call) (Result, error)
	// Run carries out c.Action of c.Service.
	Run(ctx context.Context, c Call) (Result, error)
}

// Refused is an error that trying again cannot mend, such as a wrong credential.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Refuse makes a Refused.
func Refuse(text string) error { return &Refused{errors.New(text)} }

// IsRefused reports whether trying again cannot help.
func IsRefused(err error) bool {
	var r *Refused
	return errors.As(err, &r)
}
