package signers

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"
)

// Set holds the keys that may sign. It is safe for concurrent use.
type Set struct {
	ssh     []line
	openpgp openpgp.EntityList
}

// Signer is who signed, in the words of the Set.
type Signer struct {
	Name string // a principal of the SSH key, or the identity of the OpenPGP key
	Key  string // fingerprint: SHA256:… of an SSH key, hexadecimal digits of an OpenPGP key
}

// Errors of Verify, for errors.Is. The returned error wraps one of them and says more.
var (
	ErrUnsigned = errors.New("it is not signed")
	ErrUnknown  = errors.New("the key that signed it is not among the allowed signers")
	ErrBroken   = errors.New("its signature does not hold")
	ErrNotValid = errors.New("the key that signed it may not sign at that time or for this")
)

const (
	beginKey = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	endKey   = "-----END PGP PUBLIC KEY BLOCK-----"
	// mostText is the largest text, in bytes: a few thousand keys.
	mostText = 4 << 20
)

// Parse reads a text of allowed signers. An error names the line.
func Parse(text string) (*Set, error) {
	if len(text) > mostText {
		return nil, fmt.Errorf("the allowed signers are larger than %d MiB", mostText>>20)
	}
	s := &Set{}
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines); n++ {
		content := strings.TrimSpace(lines[n])
		switch {
		case content == "" || strings.HasPrefix(content, "#"):
		case content == beginKey:
			first := n
			for n++; n < len(lines) && strings.TrimSpace(lines[n]) != endKey; n++ {
			}
			if n == len(lines) {
				return nil, fmt.Errorf("line %d: the OpenPGP key that begins here has no end", first+1)
			}
			if err := s.addOpenPGP(strings.Join(lines[first:n+1], "\n")); err != nil {
				return nil, fmt.Errorf("line %d: %w", first+1, err)
			}
		case strings.HasPrefix(content, "-----BEGIN"):
			return nil, fmt.Errorf("line %d: only public keys belong here, and this is %s", n+1,
				strings.Trim(content, "- "))
		default:
			l, err := parseLine(content)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			s.ssh = append(s.ssh, l)
		}
	}
	return s, nil
}

// Empty reports whether the set has no keys.
func (s *Set) Empty() bool { return len(s.ssh) == 0 && len(s.openpgp) == 0 }

// Verify returns who signed a payload. at is the time at which it was signed, as the
// payload says; like in Git, a key counts if it was valid then.
func (s *Set) Verify(payload []byte, signature string, at time.Time) (Signer, error) {
	switch {
	case strings.TrimSpace(signature) == "":
		return Signer{}, ErrUnsigned
	case strings.HasPrefix(signature, "-----BEGIN SSH SIGNATURE-----"):
		return s.verifySSH(payload, signature, at)
	case strings.HasPrefix(signature, "-----BEGIN PGP SIGNATURE-----"),
		strings.HasPrefix(signature, "-----BEGIN PGP MESSAGE-----"):
		return s.verifyOpenPGP(payload, signature)
	case strings.HasPrefix(signature, "-----BEGIN SIGNED MESSAGE-----"):
		return Signer{}, fmt.Errorf("%w: it is signed with X.509, which is not supported; sign with SSH or OpenPGP",
			ErrUnknown)
	}
	return Signer{}, fmt.Errorf("%w: it is neither an SSH nor an OpenPGP signature", ErrBroken)
}

// Split separates the signature of a raw commit object from the payload that was
// signed. A commit with two signatures is an error.
func Split(raw []byte) (payload []byte, signature string, err error) {
	head, message, _ := bytes.Cut(raw, []byte("\n\n"))
	hasMessage := len(head) < len(raw)
	var kept, signed []string
	in := "" // the header that a continued line belongs to
	for _, l := range strings.Split(string(head), "\n") {
		name, value, _ := strings.Cut(l, " ")
		if name != "" {
			in = name
			if name == "gpgsig" {
				if signed != nil {
					return nil, "", fmt.Errorf("%w: it has two signatures", ErrBroken)
				}
				signed = []string{value}
				continue
			}
		}
		switch in {
		case "gpgsig":
			signed = append(signed, value)
		case "gpgsig-sha256": // the signature of the same commit in SHA-256 format
		default:
			kept = append(kept, l)
		}
	}
	payload = []byte(strings.Join(kept, "\n"))
	if hasMessage {
		payload = append(append(payload, "\n\n"...), message...)
	}
	return payload, strings.Join(signed, "\n"), nil
}

// SplitTag does the same for a raw tag object, whose signature is at the end of its message.
func SplitTag(raw []byte) (payload []byte, signature string) {
	at := -1
	for _, begin := range []string{
		"-----BEGIN SSH SIGNATURE-----", "-----BEGIN PGP SIGNATURE-----",
		"-----BEGIN PGP MESSAGE-----", "-----BEGIN SIGNED MESSAGE-----",
	} {
		if i := bytes.LastIndex(raw, []byte("\n"+begin)); i >= 0 {
			at = max(at, i+1)
		}
	}
	if at < 0 {
		return raw, ""
	}
	return raw[:at], string(raw[at:])
}

// fingerprint returns the form of an SSH key that people compare.
func fingerprint(k ssh.PublicKey) string { return ssh.FingerprintSHA256(k) }
