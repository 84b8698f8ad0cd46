package protocol

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// TokenPrefix begins every join token of an agent, and ProvisionerPrefix that of a provisioner, so that nobody uses one
// as the other.
const (
	TokenPrefix       = "ordain-join."
	ProvisionerPrefix = "ordain-provisioner."
)

// JoinToken is what is in the text of a join token.
type JoinToken struct {
	URL    string `json:"url"`
	ID     string `json:"id"`
	Secret string `json:"secret"`       // 32 bytes, base64url
	CA     string `json:"ca,omitempty"` // SHA-256 of the CA certificate; empty: the authorities of the machine
}

const maxToken = 4096

// String returns the text of a token for an agent.
func (t JoinToken) String() string { return t.text(TokenPrefix) }

// Provisioner returns the text of a token for a provisioner.
func (t JoinToken) Provisioner() string { return t.text(ProvisionerPrefix) }

func (t JoinToken) text(prefix string) string {
	body, _ := json.Marshal(t) // strings can always be encoded
	return prefix + base64.RawURLEncoding.EncodeToString(body)
}

// ParseToken reads the text of a join token for an agent. Its errors say nothing about its content.
func ParseToken(text string) (JoinToken, error) {
	if strings.HasPrefix(strings.TrimSpace(text), ProvisionerPrefix) {
		return JoinToken{}, errors.New("this is a token for a provisioner, and agents cannot use it; " +
			"ask for one for an agent: ordain agent token create")
	}
	return parse(text, TokenPrefix)
}

// ParseProvisionerToken reads the text of a join token for a provisioner.
func ParseProvisionerToken(text string) (JoinToken, error) {
	if strings.HasPrefix(strings.TrimSpace(text), TokenPrefix) {
		return JoinToken{}, errors.New("this is a token for an agent, and provisioners cannot use it; " +
			"ask for one for a provisioner: ordain provisioner token create")
	}
	return parse(text, ProvisionerPrefix)
}

func parse(text, prefix string) (t JoinToken, err error) {
	broken := errors.New(
		"this is not a join token: it begins with " + prefix + " and has one line; was it copied whole?",
	)
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok || len(coded) > maxToken {
		return t, broken
	}
	body, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if err != nil || json.Unmarshal(body, &t) != nil {
		return JoinToken{}, broken
	}
	u, err := url.Parse(t.URL)
	secret, wrong := base64.RawURLEncoding.DecodeString(t.Secret)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || !isID.MatchString(t.ID) || wrong != nil ||
		len(secret) != 32 || t.CA != "" && !isHash.MatchString(t.CA) {
		return JoinToken{}, broken
	}
	return t, nil
}

var (
	isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
	isID   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// IsHash reports whether a text is a SHA-256 in hexadecimal.
func IsHash(text string) bool { return isHash.MatchString(text) }

// Hash returns the SHA-256 of a content, in hexadecimal.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
