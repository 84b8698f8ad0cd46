package tokens

import (
	"regexp"
	"testing"
	"time"

	"ordain.dev/ordain/server/access"
)

// A scanner for secrets finds tokens by their form, and their checksum tells them from texts that look alike.
func TestFormOfTokens(t *testing.T) {
	form := regexp.MustCompile(`^ordain_(pat|job)_[A-Z2-7]{33}$`)
	for _, prefix := range []string{personalPrefix, jobPrefix} {
		text := newText(prefix)
		if !form.MatchString(text) || !wellFormed(text, prefix) || kindOf(text) != prefix {
			t.Errorf("%s is no token", text)
		}
		for i := len(prefix); i < len(text); i++ {
			other := byte('A')
			if text[i] == other {
				other = 'B'
			}
			if wellFormed(text[:i]+string(other)+text[i+1:], prefix) {
				t.Errorf("a typing error in place %d is not noticed", i)
			}
		}
	}
}

// A token that was verified just before it was revoked must not be remembered after that.
func TestRevokedWhileItIsVerified(t *testing.T) {
	c := newCache()
	now := time.Now()
	digest := digestOf("token")
	found := proof{principal: access.Principal{Kind: access.Token, Name: "noor"}, expires: now.Add(time.Second)}
	ticket := c.ticket()
	c.put(digest, found, 1, ticket, now)
	if _, ok := c.get(digest, 1, now); !ok {
		t.Error("it is not remembered")
	}
	if _, ok := c.get(digest, 2, now); ok {
		t.Error("it is remembered though people may do something else by now")
	}
	if _, ok := c.get(digest, 1, now.Add(time.Second)); ok {
		t.Error("it is remembered though it has expired")
	}
	c.forget()
	c.put(digest, found, 1, ticket, now)
	if _, ok := c.get(digest, 1, now); ok {
		t.Error("it is remembered though it was revoked meanwhile")
	}
}

func TestPatternsOfClaims(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"acme/infra", "acme/infra", true}, {"acme/infra", "acme/infra2", false}, {"acme/*", "acme/infra", true},
		{"acme/*", "acme/a/b", false}, {"acme/**", "acme/a/b", true}, {"acme/*", "xacme/infra", false},
		{"acme/*", "acme/infra\n", true}, {"a.me/*", "acme/infra", false}, {"refs/heads/*", "refs/tags/1", false},
		{"acme/in*", "acme/infra/x", false}, {"acme/infra", "acme/infra\n", false}, {"[a]", "a", false},
	} {
		if got := matches(c.pattern, c.value); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.value, got)
		}
	}
	if meets(map[string]any{"sub": "x"}, nil) || meets(map[string]any{}, map[string]string{"sub": "**"}) {
		t.Error("nothing is enough")
	}
}

// A condition binds a trust to one owner only if nobody else's jobs can meet it. Jobs of anybody may call a reusable
// workflow, so the workflow's owner says nothing about the job's.
func TestConditionsThatBindAnOwner(t *testing.T) {
	for _, c := range []struct {
		claim, pattern string
		want           bool
	}{
		{"repository", "acme/infra", true}, {"repository", "acme/*", true}, {"repository", "*/infra", false},
		{"repository", "a*/infra", false}, {"sub", "repo:acme/*", true}, {"sub", "repo:*", false},
		{"sub", "repo:/x*", false}, {"repository_owner", "acme", true}, {"repository_owner", "ac*", false},
		{"job_workflow_ref", "acme/ci/.github/workflows/deploy.yml@refs/heads/main", false},
		{"job_workflow_ref", "acme/*", false}, {"environment", "production", false}, {"ref", "refs/heads/main", false},
	} {
		if got := bindsOwner(c.claim, c.pattern); got != c.want {
			t.Errorf("%s %q: %v", c.claim, c.pattern, got)
		}
	}
}
