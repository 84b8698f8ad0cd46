package deployer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// discovered reads what a handler discovered; what is not a record of a resource is left out and reported.
func discovered(
	by intent.ResourceID,
	found map[string]json.RawMessage,
	at time.Time,
) (out []intent.Discovered, nonsense []string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		id, err := intent.ParseResourceID(name)
		var object map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(found[name], &object)
		}
		if err == nil && object == nil {
			err = errors.New("it has no record")
		}
		if err != nil {
			nonsense = append(nonsense, fmt.Sprintf("What was discovered as %.200q is left out: %v", name, err))
			continue
		}
		out = append(out, intent.Discovered{ID: id, Discovery: by, Record: found[name], Found: at})
	}
	return out, nonsense
}
