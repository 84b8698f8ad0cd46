package signers

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// namespace is the namespace of Git's signatures.
const namespace = "git"

// line is a line of allowed signers with an SSH key.
type line struct {
	principals []string // patterns; those that begin with ! exclude
	authority  bool     // the key signs certificates, not commits
	namespaces []string // patterns; empty for all namespaces
	after      time.Time
	before     time.Time
	key        ssh.PublicKey
}

// parseLine reads: principals [options] keytype base64 [comment].
func parseLine(text string) (line, error) {
	var l line
	principals, rest := field(text)
	l.principals = strings.Split(strings.Trim(principals, `"`), ",")
	options := ""
	if kind, after := field(rest); !isKeyType(kind) {
		options, rest = kind, after
	}
	kind, rest := field(rest)
	if !isKeyType(kind) {
		return l, fmt.Errorf(
			"this is not “principals [options] key-type key”, such as: ada@example.com ssh-ed25519 AAAA…",
		)
	}
	encoded, _ := field(rest)
	blob, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return l, fmt.Errorf("the key of %s is not base64", principals)
	}
	if l.key, err = ssh.ParsePublicKey(blob); err != nil {
		return l, fmt.Errorf("the key of %s cannot be read: %w", principals, err)
	}
	if l.key.Type() != kind {
		return l, fmt.Errorf("the key of %s says that it is %s, and is %s", principals, kind, l.key.Type())
	}
	return l, l.options(options)
}

func isKeyType(s string) bool {
	return strings.HasPrefix(s, "ssh-") || strings.HasPrefix(s, "ecdsa-") || strings.HasPrefix(s, "sk-")
}

// field cuts a text at the first blank that is not inside quotes.
func field(text string) (first, rest string) {
	quoted := false
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && (r == ' ' || r == '\t'):
			return text[:i], strings.TrimLeft(text[i:], " \t")
		}
	}
	return text, ""
}

// options reads the options of a line.
func (l *line) options(text string) error {
	for text != "" {
		option := text
		quoted := false
		for i, r := range text {
			if r == '"' {
				quoted = !quoted
			}
			if r == ',' && !quoted {
				option = text[:i]
				break
			}
		}
		text = strings.TrimPrefix(text[len(option):], ",")
		name, value, _ := strings.Cut(option, "=")
		value = strings.Trim(value, `"`)
		var err error
		switch strings.ToLower(name) {
		case "cert-authority":
			l.authority = true
		case "namespaces":
			l.namespaces = strings.Split(value, ",")
		case "valid-after":
			l.after, err = parseTime(value)
		case "valid-before":
			l.before, err = parseTime(value)
		default:
			return fmt.Errorf(
				"the option %q is not known: cert-authority, namespaces, valid-after and valid-before are",
				name,
			)
		}
		if err != nil {
			return fmt.Errorf("the option %s: %w", name, err)
		}
	}
	return nil
}

// parseTime reads YYYYMMDD[HHMM[SS]], in local time unless a Z ends it.
func parseTime(text string) (time.Time, error) {
	where := time.Local
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		where = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if t, err := time.ParseInLocation(layout, digits, where); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 20261231 or 202612312359Z", text)
}

// permits reports whether the line allows its key to sign for Git at a time.
func (l line) permits(at time.Time) bool {
	if !l.after.IsZero() && at.Before(l.after) || !l.before.IsZero() && !at.Before(l.before) {
		return false
	}
	return len(l.namespaces) == 0 || matches(l.namespaces, namespace)
}

// matches reports whether a name matches a list of patterns, as in ssh_config(5).
func matches(patterns []string, name string) bool {
	found := false
	for _, p := range patterns {
		p, excludes := strings.CutPrefix(strings.TrimSpace(p), "!")
		// A principal is not a path: / is a character like any other.
		ok, err := path.Match(strings.ReplaceAll(p, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
		if err != nil || !ok {
			continue
		}
		if excludes {
			return false
		}
		found = true
	}
	return found
}

// verifySSH verifies an SSH signature.
func (s *Set) verifySSH(payload []byte, text string, at time.Time) (Signer, error) {
	sig, err := sshsig.Unarmor([]byte(text))
	if err != nil {
		return Signer{}, fmt.Errorf("%w: the SSH signature cannot be read", ErrBroken)
	}
	if sig.Namespace != namespace {
		return Signer{}, fmt.Errorf("%w: it was signed for the namespace %q, not for git", ErrBroken,
			shorten(sig.Namespace))
	}
	if f := sig.Signature.Format; f == ssh.KeyAlgoRSA || f == "ssh-dss" {
		return Signer{}, fmt.Errorf("%w: it was signed with %s, which is no longer secure", ErrBroken, f)
	}
	if err := sshsig.Verify(bytes.NewReader(payload), sig, sig.PublicKey, sig.HashAlgorithm, namespace); err != nil {
		return Signer{}, fmt.Errorf("%w: it was changed after it was signed, or signed with another key", ErrBroken)
	}
	cert, isCert := sig.PublicKey.(*ssh.Certificate)
	late := false
	for _, l := range s.ssh {
		name := ""
		switch {
		case l.authority && isCert:
			name = l.vouches(cert, at)
		case !l.authority && !isCert && bytes.Equal(l.key.Marshal(), sig.PublicKey.Marshal()):
			name = l.principals[0]
		}
		if name == "" {
			continue
		}
		if !l.permits(at) {
			late = true
			continue
		}
		return Signer{Name: name, Key: fingerprint(sig.PublicKey)}, nil
	}
	if late {
		return Signer{}, fmt.Errorf("%w: %s", ErrNotValid, fingerprint(sig.PublicKey))
	}
	return Signer{}, fmt.Errorf("%w: %s", ErrUnknown, fingerprint(sig.PublicKey))
}

// vouches returns the principal that an authority allows to sign with a certificate,
// or an empty text.
func (l line) vouches(cert *ssh.Certificate, at time.Time) string {
	if cert.CertType != ssh.UserCert || !bytes.Equal(cert.SignatureKey.Marshal(), l.key.Marshal()) {
		return ""
	}
	i := slices.IndexFunc(cert.ValidPrincipals, func(name string) bool { return matches(l.principals, name) })
	if i < 0 {
		return ""
	}
	checker := ssh.CertChecker{Clock: func() time.Time { return at }}
	if checker.CheckCert(cert.ValidPrincipals[i], cert) != nil {
		return ""
	}
	return cert.ValidPrincipals[i]
}

// shorten makes a stranger's text one line of at most 60 characters.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return s
}
