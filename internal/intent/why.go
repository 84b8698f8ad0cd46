package intent

import "time"

// Why says why a resource is not deployed. The most important reason comes first.
type Why struct {
	Resource ResourceID
	Status   Status
	// Sentence is the answer in one sentence.
	Sentence string
	Reasons  []WhyReason
}

// WhyReason is a reason why a resource is not deployed.
type WhyReason struct {
	// Kind is one word for programs: halted, paused, window, freeze, breaker, parked,
	// requires, undefined, protected, reported, retry, held_version, queue, deploying, orphan.
	Kind string
	Text string
	// Until is when it ends by itself; zero: only a person or another event ends it.
	Until time.Time
	// Resource is the resource that it waits for; zero: none.
	Resource ResourceID
}
