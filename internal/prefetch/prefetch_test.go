package prefetch

import (
	"testing"
	"unsafe"
)

// No pointer is a wrong one: what cannot be fetched is not.
func TestAnyPointerMayBeGiven(t *testing.T) {
	number := 7
	Of(&number)
	Of[int](nil)
	Two(unsafe.Pointer(&number))
	Two(nil)
	if number != 7 {
		t.Errorf("the number is %d", number)
	}
}
