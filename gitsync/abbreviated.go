package gitsync

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
)

// shortestCommit is the fewest digits by which a person may name a commit.
const shortestCommit = 4

// abbreviated finds the commit that begins with these digits. It finds none when
// the text cannot be the beginning of a commit, or no commit begins with it. When
// several commits do, it returns a fault that names them.
func (m *mirror) abbreviated(p place, digits string) (commit plumbing.Hash, found bool, err error) {
	if digits = strings.ToLower(digits); len(digits) < shortestCommit || len(digits) >= 2*len(commit) {
		return commit, false, nil
	}
	return m.withPrefix(p, digits)
}

// withPrefix is abbreviated without a lower bound on the number of digits.
func (m *mirror) withPrefix(p place, digits string) (commit plumbing.Hash, found bool, err error) {
	prefix, err := hex.DecodeString(digits[:len(digits)/2*2])
	if err != nil || strings.Trim(digits, "0123456789abcdef") != "" {
		return commit, false, nil
	}
	all, err := m.store.WithPrefix(prefix)
	if err != nil {
		return commit, false, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	var commits []string
	for _, h := range all {
		if !strings.HasPrefix(h.String(), digits) {
			continue
		}
		// It may also be a file, a folder or a tag.
		if _, err := m.store.EncodedObject(plumbing.CommitObject, h); err == nil {
			commits = append(commits, h.String())
		}
	}
	switch slices.Sort(commits); len(commits) {
	case 0:
		return commit, false, nil
	case 1:
		return plumbing.NewHash(commits[0]), true, nil
	}
	return commit, false, fault.New(opFetch, fault.Invalid,
		fmt.Sprintf("%s is ambiguous: %d commits in %s begin with it", digits, len(commits), p.shown)).
		Hint("give more of the hash: " + enumerate(commits, 5))
}
