package resources

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// missing is the error about a resource that a task does not have.
func missing(resourceType, name string, there []string) error {
	slices.Sort(there)
	hint := "there are none of this type: upload it, stage it and synchronize the plug-ins"
	if len(there) > 0 {
		hint = "these are there: " + strings.Join(there, ", ")
	}
	return fault.New("resources.Path", fault.NotFound,
		fmt.Sprintf("there is no resource %q of the type %q", name, resourceType)).Hint(hint)
}
