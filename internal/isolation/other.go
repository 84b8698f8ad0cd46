//go:build !linux

package isolation

import (
	"errors"
	"os/exec"
)

// Detect finds nothing: only Linux offers the means that this package uses.
func Detect() Support { return Support{Why: "this system is not Linux"} }

// Mapped reports whether this process may use all user ids of a range.
func Mapped(uint32, uint32) bool { return false }

// Command fails.
func (s Support) Command(*exec.Cmd, Policy) (func() (*Space, error), error) {
	return nil, errors.New("processes can be confined on Linux only")
}

// Space is all processes that descend from one start; here there are none.
type Space struct{}

// End does nothing.
func (*Space) End(...int) int { return 0 }

// Close does nothing.
func (*Space) Close() {}

// AwaitEnd does nothing.
func AwaitEnd(int) {}
