package intent

import (
	"encoding/json"
	"time"
)

// Discovered is a resource that a discovery resource found outside.
type Discovered struct {
	ID        ResourceID      // that it would have as a resource
	Discovery ResourceID      // what found it
	Record    json.RawMessage // an object: what is known of it
	Found     time.Time       // last
	Managed   bool            // a resource of the intent has the same id
}
