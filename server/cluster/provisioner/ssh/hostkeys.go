package ssh

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"

	gossh "golang.org/x/crypto/ssh"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// MaxHostKeys is how many host keys a machine may have.
const MaxHostKeys = 32

// preferred are the host key algorithms that the client offers, the best first.
var preferred = []string{
	gossh.KeyAlgoED25519,
	gossh.KeyAlgoECDSA256,
	gossh.KeyAlgoECDSA384,
	gossh.KeyAlgoECDSA521,
	gossh.KeyAlgoRSASHA512,
	gossh.KeyAlgoRSASHA256,
}

// HostKeys returns the lines of host keys in the form in which they are pinned: type and key, each key once. The lines
// may have the form of authorized keys, of public key files or of known hosts; empty lines and comments are left out.
func HostKeys(lines []string) ([]string, error) {
	keys, err := parseHostKeys(lines)
	var out []string
	for _, key := range keys {
		out = append(out, Line(key))
	}
	return out, err
}

// Line is the form in which a host key is pinned.
func Line(key gossh.PublicKey) string {
	return strings.TrimSpace(string(gossh.MarshalAuthorizedKey(key)))
}

func parseHostKeys(lines []string) ([]gossh.PublicKey, error) {
	var keys []gossh.PublicKey
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, _, options, _, err := gossh.ParseAuthorizedKey([]byte(line))
		if err != nil || len(options) > 0 {
			_, _, key, _, _, err = gossh.ParseKnownHosts([]byte(line))
		}
		if err != nil {
			return nil, fault.New("ssh.HostKeys", fault.Invalid, fmt.Sprintf("%.60q is no host key", line)).
				Hint("give a line of a file /etc/ssh/ssh_host_*_key.pub of the machine, or of ssh-keyscan")
		}
		if !contains(keys, key) {
			keys = append(keys, key)
		}
		if len(keys) > MaxHostKeys {
			return nil, fault.New("ssh.HostKeys", fault.Invalid, fmt.Sprintf("more than %d host keys", MaxHostKeys))
		}
	}
	return keys, nil
}

func contains(keys []gossh.PublicKey, key gossh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(k gossh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) })
}

// HostKeysOfConsole returns the host keys that cloud-init prints on the console of a machine when it starts for the
// first time. There are none if the console does not have all of them.
func HostKeysOfConsole(console string) []string {
	_, rest, begun := strings.Cut(console, "-----BEGIN SSH HOST KEY KEYS-----")
	block, _, ended := strings.Cut(rest, "-----END SSH HOST KEY KEYS-----")
	if !begun || !ended {
		return nil
	}
	var lines []string
	for line := range strings.Lines(block) {
		if key, err := HostKeys([]string{line}); err == nil && len(lines) < MaxHostKeys {
			lines = append(lines, key...)
		}
	}
	return lines
}

// algorithms returns what the client offers for the host key: first what the pinned keys can do, so that the machine
// shows a key that is pinned if it has several; then the others, so that a changed key is seen and can be named.
func algorithms(pinned []gossh.PublicKey) []string {
	have := func(algorithm string) bool {
		return slices.ContainsFunc(pinned, func(k gossh.PublicKey) bool {
			if k.Type() == gossh.KeyAlgoRSA {
				return algorithm == gossh.KeyAlgoRSASHA256 || algorithm == gossh.KeyAlgoRSASHA512
			}
			return k.Type() == algorithm
		})
	}
	out := slices.Clone(preferred)
	slices.SortStableFunc(out, func(a, b string) int {
		switch {
		case have(a) == have(b):
			return 0
		case have(a):
			return -1
		}
		return 1
	})
	return out
}

// checker judges the host key that a machine shows, and remembers it.
type checker struct {
	pinned []gossh.PublicKey
	learn  bool
	shown  gossh.PublicKey
	wrong  error
}

func (c *checker) check(address string, _ net.Addr, key gossh.PublicKey) error {
	c.shown = key
	switch {
	case contains(c.pinned, key), c.learn && len(c.pinned) == 0:
		return nil
	case len(c.pinned) == 0:
		c.wrong = &plugin.Refused{Err: fault.New("ssh.Dial", fault.Forbidden,
			"the host key of "+address+" is not known, so this may be another machine").
			Hint("a machine's host key is learnt when it is confirmed; create the node again, " +
				"or declare its host keys")}
	default:
		var prints []string
		for _, k := range c.pinned {
			prints = append(prints, gossh.FingerprintSHA256(k)+" ("+k.Type()+")")
		}
		c.wrong = &plugin.Refused{Err: fault.New("ssh.Dial", fault.Forbidden, fmt.Sprintf(
			"the host key of %s has changed: it shows %s (%s), and %s was pinned; nothing was sent to it",
			address, gossh.FingerprintSHA256(key), key.Type(), strings.Join(prints, " or "))).
			Hint("find out whether the machine was installed anew, or another one answers at its address; " +
				"if the change is wanted, replace the node or declare the new host key")}
	}
	return c.wrong
}
