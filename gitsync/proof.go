package gitsync

import (
	"slices"
	"time"

	"ordain.dev/ordain/internal/intent"
)

// While webhooks prove that they arrive, polls need only find what they miss:
// they come rarer.
//
//	normal ──a webhook tells of a commit──▶ rarer
//	   ▲                                      │ a poll finds a commit of which none told,
//	   └──────────────────────────────────────┘ or none came for proofLasts
const (
	// rarer is how many times longer the time between two polls is then.
	rarer = 10
	// rarest is the longest that it becomes by this.
	rarest = time.Hour
	// proofLasts is how long a webhook proves something: a repository may be quiet for a day.
	proofLasts = 24 * time.Hour
	// proofCommits is how many of the commits are remembered that webhooks told of.
	proofCommits = 256
)

// proof is what webhooks proved of one source. The zero value is no proof.
type proof struct {
	heard time.Time // the last webhook; zero: no proof
	told  []string  // commits that webhooks told of, newest last
}

// hear takes note of a webhook that told of commits.
func (p *proof) hear(commits []string, now time.Time) {
	for _, c := range commits {
		if c != "" && !slices.Contains(p.told, c) {
			p.told = append(p.told, c)
		}
	}
	p.told = p.told[max(0, len(p.told)-proofCommits):]
	p.heard = now
}

// found takes note of a commit that a poll found, and tells whether that ended the proof.
func (p *proof) found(commit string) (lost bool) {
	if slices.Contains(p.told, commit) {
		return false
	}
	lost = !p.heard.IsZero()
	p.heard = time.Time{}
	return lost
}

// interval is the time between two polls.
func (p *proof) interval(normal time.Duration, now time.Time) time.Duration {
	if p.heard.IsZero() || now.Sub(p.heard) > proofLasts {
		return normal
	}
	return max(normal, min(rarer*normal, rarest))
}

// Heard tells of a webhook that proved where it comes from, and of the commits of
// the repository of an environment that it, and the look that followed, named.
func (w *Watcher) Heard(env intent.EnvironmentID, commits []string) {
	w.mu.Lock()
	s := w.sources[env]
	w.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proof.hear(commits, time.Now())
}
