package intent

import "time"

// Why answers why a resource is not deployed: the most pressing reason first.
type Why struct {
	Resource ResourceID
	Status   Status
	// Sentence is the answer in one sentence.
	Sentence string
	Reasons  []WhyReason
}

// WhyReason is one thing that a resource waits for.
type WhyReason struct {
	// Kind is one word for programs: halted, paused, window, freeze, breaker, parked,
	// requires, undefined, protected, reported, retry, held_version, queue, deploying, orphan.
	Kind string
	Text string
	// Until is when it is over by itself; zero: only a person or another event ends it.
	Until time.Time
	// Resource that it waits for; zero: none.
	Resource ResourceID
}
