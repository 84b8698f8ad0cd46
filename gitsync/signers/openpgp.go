package signers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

func (s *Set) addOpenPGP(block string) error {
	keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(block))
	if err != nil {
		return fmt.Errorf("the OpenPGP key cannot be read: %w", err)
	}
	for _, k := range keys {
		if k.PrivateKey != nil {
			return errors.New("only public keys belong here, and this is a private OpenPGP key")
		}
	}
	s.openpgp = append(s.openpgp, keys...)
	return nil
}

func (s *Set) verifyOpenPGP(payload []byte, text string) (signer Signer, err error) {
	defer func() {
		if recover() != nil { // the signature comes from a stranger, and the library may panic on it
			signer, err = Signer{}, fmt.Errorf("%w: the OpenPGP signature cannot be read", ErrBroken)
		}
	}()
	sig, err := readSignature(text)
	if err != nil {
		return Signer{}, fmt.Errorf("%w: the OpenPGP signature cannot be read", ErrBroken)
	}
	// The key must have been valid when it signed.
	then := &packet.Config{Time: func() time.Time { return sig.CreationTime }}
	key, err := openpgp.CheckArmoredDetachedSignature(s.openpgp, strings.NewReader(string(payload)),
		strings.NewReader(text), then)
	switch {
	case err == nil:
		return Signer{Name: identity(key), Key: fmt.Sprintf("%X", key.PrimaryKey.Fingerprint)}, nil
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return Signer{}, fmt.Errorf("%w: OpenPGP key %s", ErrUnknown, issuer(sig))
	case errors.Is(err, pgperrors.ErrKeyExpired),
		errors.Is(err, pgperrors.ErrKeyRevoked),
		errors.Is(err, pgperrors.ErrSignatureExpired):
		return Signer{}, fmt.Errorf("%w: OpenPGP key %s is expired or revoked", ErrNotValid, issuer(sig))
	}
	return Signer{}, fmt.Errorf("%w: it was changed after it was signed, or signed with another key", ErrBroken)
}

// readSignature reads an armored signature.
func readSignature(text string) (*packet.Signature, error) {
	block, err := armor.Decode(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	p, err := packet.Read(block.Body)
	if err != nil {
		return nil, err
	}
	sig, ok := p.(*packet.Signature)
	if !ok {
		return nil, errors.New("no signature")
	}
	return sig, nil
}

// issuer returns the fingerprint or the id of the key that made a signature.
func issuer(sig *packet.Signature) string {
	switch {
	case len(sig.IssuerFingerprint) > 0:
		return fmt.Sprintf("%X", sig.IssuerFingerprint)
	case sig.IssuerKeyId != nil:
		return fmt.Sprintf("%016X", *sig.IssuerKeyId)
	}
	return "without a name"
}

// identity returns the owner of a key: its primary identity, or the first by name.
func identity(key *openpgp.Entity) string {
	if id := key.PrimaryIdentity(); id != nil {
		return id.Name
	}
	var names []string
	for name := range key.Identities {
		names = append(names, name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("%X", key.PrimaryKey.Fingerprint)
	}
	slices.Sort(names)
	return names[0]
}
