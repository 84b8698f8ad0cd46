package natsbus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"strings"

	"github.com/nats-io/nats.go"

	"ordain.dev/ordain/internal/fault"
)

// explain says for people why the bus is not connected, and what to do about it. It reports whether only a person can
// mend that; else it may pass by itself.
func explain(err error) (why string, lasting bool) {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert tls.AlertError
	switch {
	case err == nil:
		return "", false
	case errors.Is(err, nats.ErrAuthorization),
		errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired),
		errors.Is(err, nats.ErrNkeysNotSupported):
		return "the server of the bus refuses our credentials (" + plain(err) +
			"); check [bus] user, password-file, credentials-file", true
	case errors.As(err, &authority), errors.As(err, &name), errors.As(err, &invalid):
		return "the certificate of the server of the bus is not trusted (" + plain(err) + "); check [bus] tls-ca", true
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the server of the bus does not offer TLS; set up TLS there, or connect to a loopback address", true
	case errors.Is(err, nats.ErrTLS), errors.As(err, &alert):
		return "TLS with the server of the bus failed (" + plain(err) + "); check [bus] tls-ca, tls-cert, tls-key", true
	case errors.Is(err, nats.ErrPermissionViolation):
		return "the server of the bus does not permit what we need (" + plain(err) +
			"); allow the user to publish and subscribe to ordain.>", true
	case errors.Is(err, nats.ErrNoServers):
		return "no server of the bus accepts connections", false
	case errors.Is(err, nats.ErrStaleConnection):
		return "the server of the bus does not answer any more", false
	case errors.Is(err, io.EOF):
		return "the server of the bus closed the connection", false
	}
	kind := fault.KindOf(err)
	return plain(err), kind == fault.Invalid || kind == fault.Unauthorized
}

// plain returns the text of an error without the prefix of the library.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "nats: ", "") }
