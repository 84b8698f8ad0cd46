package natsbus

import (
	"crypto/x509"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// explain says for people why the bus is not connected, and what to do about it.
func explain(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported):
		return "the server of the bus refuses our credentials (" + plain(err) +
			"); check [bus] user, password-file, credentials-file"
	case errors.As(err, &authority), errors.As(err, &name), errors.As(err, &invalid):
		return "the certificate of the server of the bus is not trusted (" + plain(err) + "); check [bus] tls-ca"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the server of the bus does not offer TLS; set up TLS there, or connect to a loopback address"
	case errors.Is(err, nats.ErrTLS):
		return "TLS with the server of the bus failed (" + plain(err) + "); check [bus] tls-ca, tls-cert, tls-key"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "the server of the bus does not permit what we need (" + plain(err) +
			"); allow the user to publish and subscribe to ordain.>"
	case errors.Is(err, nats.ErrNoServers):
		return "no server of the bus accepts connections"
	}
	return plain(err)
}

// plain returns the text of an error without the prefix of the library.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "nats: ", "") }
