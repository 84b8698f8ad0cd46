package scheduler

import "ordain.dev/ordain/internal/intent"

// Unparked returns a state that is no longer parked, with the counters that led to the parking reset. What was
// contested is to be deployed again. The store's query StateUnpark does the same.
func Unparked(s intent.ResourceState) intent.ResourceState {
	if s.Parked == intent.ParkedContested && s.Compliance == intent.NonCompliant {
		s.Compliance = intent.HasUpdate
	}
	s.Parked, s.ParkedAt, s.RetryAt, s.FailedCode, s.Heals, s.Attempts = intent.NotParked, nil, nil, "", nil, 0
	return s
}

// Interrupted returns the state of a resource whose run was interrupted, perhaps before it began. Until it is deployed
// again, the resource may be as before, as intended, or anything in between.
func Interrupted(s intent.ResourceState) intent.ResourceState {
	s.IsDeploying, s.DeployedHash = false, ""
	if s.Compliance == intent.Compliant {
		s.Compliance = intent.HasUpdate
	}
	return s
}
