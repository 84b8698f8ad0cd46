package intent

import (
	"encoding/json"
	"time"
)

// Discovered is a resource that a discovery resource found.
type Discovered struct {
	ID        ResourceID      // the id that it would have in a model
	Discovery ResourceID      // the discovery resource that found it
	Record    json.RawMessage // an object with its attributes
	Found     time.Time       // last
	Managed   bool            // a resource of the intent has the same id
}
