package gitsync

import (
	"slices"
	"time"
)

// As long as webhooks prove that they arrive, polls only have to find what
// webhooks miss, so they become less frequent.
//
//	normal ──a webhook names a commit──▶ less frequent
//	   ▲                                      │ a poll finds a commit that no webhook named,
//	   └──────────────────────────────────────┘ or no webhook came for proofLasts
const (
	// slowdown is how many times longer the time between two polls is then, and
	// slowest the longest time that this leads to.
	slowdown = 10
	slowest  = time.Hour
	// proofLasts is how long a webhook proves something. It is a day, because
	// nobody may push for a day.
	proofLasts = 24 * time.Hour
	// proofCommits is how many of the commits that webhooks named are remembered.
	proofCommits = 256
)

// proof is what webhooks proved for one source. The zero value is no proof.
type proof struct {
	heard time.Time // when the last webhook came; zero for no proof
	named []string  // commits that webhooks named, newest last
}

// hear notes a webhook that named these commits.
func (p *proof) hear(commits []string, now time.Time) {
	for _, c := range commits {
		if c != "" && !slices.Contains(p.named, c) {
			p.named = append(p.named, c)
		}
	}
	p.named = p.named[max(0, len(p.named)-proofCommits):]
	p.heard = now
}

// found notes a commit that a poll found, and reports whether that ended the proof.
func (p *proof) found(commit string) (lost bool) {
	if slices.Contains(p.named, commit) {
		return false
	}
	lost = !p.heard.IsZero()
	p.heard = time.Time{}
	return lost
}

// interval returns the time between two polls.
func (p *proof) interval(normal time.Duration, now time.Time) time.Duration {
	if p.heard.IsZero() || now.Sub(p.heard) > proofLasts {
		return normal
	}
	return max(normal, min(slowdown*normal, slowest))
}
