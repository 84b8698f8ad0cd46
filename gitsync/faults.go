package gitsync

import (
	"compress/zlib"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"ordain.dev/ordain/gitsync/objects"
	"ordain.dev/ordain/internal/fault"
)

// errNotGit means that something answers at a URL, but not in Git's protocol.
var errNotGit = errors.New("the answer is not in Git's protocol")

// remoteFault turns an error of the communication with a repository into a fault.
func (p place) remoteFault(op string, err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f
	}
	err = unexpected(err)
	wrap := func(kind fault.Kind, message, advice string) error {
		return fault.Wrap(op, kind, p.credentials.redactor().Error(err)).Say(message).Hint(advice)
	}
	// plain leaves the cause out, because it only repeats the message or is a whole HTML page.
	plain := func(kind fault.Kind, message, advice string) error {
		return fault.New(op, kind, message).Hint(advice)
	}
	var (
		httpErr *githttp.Err
		dns     *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return wrap(fault.Unavailable, "asking "+p.shown+" was cancelled", "try again")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return plain(fault.Exhausted, p.shown+" did not answer in time",
			"check that the server of the repository is up and not overloaded; it is tried again")
	case isDiskFull(err):
		return wrap(
			fault.Exhausted,
			"no room on the disk for the mirror of "+p.shown,
			"make room in the state directory",
		)
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, git.ErrRepositoryNotExists):
		advice := "check the path, and that the server may read it"
		if p.local == "" {
			advice = "check the URL; forges answer the same when a private repository is asked for without credentials"
			if p.credentials != (Credentials{}) {
				advice = "check the URL, and that the credentials give access to this repository"
			}
		}
		return plain(fault.NotFound, "there is no Git repository at "+p.shown, advice)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fault.Wrap(op, fault.NotFound, errEmpty).Say("cannot fetch from " + p.shown).
			Hint("push a first commit to it")
	case errors.Is(err, transport.ErrAuthenticationRequired):
		if p.credentials == (Credentials{}) {
			return plain(
				fault.Unauthorized,
				p.shown+" asks for credentials",
				"set the environment's Git user name and password, or a token as the password",
			)
		}
		return plain(
			fault.Unauthorized,
			p.shown+" refused the credentials",
			"they may be mistyped, expired or revoked: set the environment's Git credentials again",
		)
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return plain(
			fault.Forbidden,
			p.shown+" may not be read with these credentials",
			"give the user or token read access to the repository",
		)
	case errors.As(err, &httpErr):
		return plain(
			fault.Unavailable,
			fmt.Sprintf("%s answered with HTTP status %d", p.shown, httpErr.StatusCode()),
			"check the server of the repository; it is tried again",
		)
	case errors.Is(err, errNotGit):
		return plain(
			fault.Invalid,
			"what answers at "+p.shown+" is not a Git server",
			"check the URL: it must be the one to clone from, not that of a web page",
		)
	case errors.Is(err, git.ErrUnsupportedExtensionRepositoryFormatVersion),
		errors.Is(err, git.ErrUnknownExtension),
		errors.Is(err, git.ErrUnsupportedRepositoryFormatVersion):
		return wrap(
			fault.Invalid,
			"the repository "+p.shown+" has a format that is not supported",
			"use a repository with SHA-1 object names and the files reference format",
		)
	case errors.Is(err, plumbing.ErrObjectNotFound),
		errors.Is(err, objects.ErrMalformed),
		errors.Is(err, objects.ErrDamaged),
		errors.Is(err, zlib.ErrChecksum),
		errors.Is(err, zlib.ErrHeader),
		errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, io.EOF):
		if p.local == "" {
			return wrap(fault.Unavailable, "the answer of "+p.shown+" broke off or is damaged", "it is tried again")
		}
		return p.damaged(op, err)
	case errors.Is(err, object.ErrMalformedTree), errors.Is(err, object.ErrEntriesNotSorted):
		return p.damaged(op, err)
	case errors.Is(err, objects.ErrTooLarge):
		return wrap(
			fault.Invalid,
			"the repository "+p.shown+" cannot be mirrored",
			"it holds a large file that Git stores as a difference to another: "+
				"keep such files outside of it, and remove them from its history",
		)
	case errors.Is(err, errTooDeep):
		return wrap(
			fault.Invalid,
			"the repository "+p.shown+" cannot be mirrored",
			fmt.Sprintf("nest folders at most %d deep", maxDepth),
		)
	case errors.As(err, &dns):
		return plain(
			fault.Unavailable,
			"the host of "+p.shown+" is not known",
			"check the spelling of the host, and the server's name resolution",
		)
	case errors.Is(err, syscall.ECONNREFUSED):
		return plain(
			fault.Unavailable,
			"the host of "+p.shown+" refuses connections",
			"check host and port, and that the Git server runs",
		)
	case isCertificate(err):
		return wrap(
			fault.Unavailable,
			"the certificate of "+p.shown+" is not trusted",
			"set git_ca_bundle to the certificate of its authority, or add that to the machine's trusted ones",
		)
	case errors.Is(err, fs.ErrPermission):
		return wrap(
			fault.Forbidden,
			p.shown+" may not be read by the server",
			"give the user that runs the server access to it",
		)
	}
	if strings.Contains(err.Error(), "Proxy Authentication Required") {
		return plain(
			fault.Unavailable,
			"the proxy to "+p.shown+" refused the credentials",
			"set the secret git-proxy to http://user:password@host:port",
		)
	}
	return wrap(fault.Unavailable, p.shown+" could not be fetched", "it is tried again")
}

// damaged returns the fault for a repository that is itself broken, not only our mirror of it.
func (p place) damaged(op string, err error) error {
	return fault.Wrap(op, fault.Invalid, err).
		Say("the repository " + p.shown + " is damaged").
		Hint("run git fsck in it")
}

// brokenFault returns the fault for a reference that is there and cannot be read.
func (p place) brokenFault(op, full string, err error) error {
	if p.local == "" || !fromRepository(err) || errors.Is(err, fs.ErrPermission) {
		return p.remoteFault(op, err)
	}
	return fault.Wrap(op, fault.Invalid, err).
		Say(fmt.Sprintf("%s of the repository %s is damaged", printable(full), p.shown)).
		Hint("run git fsck in it, and push the branch or tag again")
}

// fromRepository reports whether a fetch failed because of what the repository holds,
// so that fetching less of it may succeed. It returns false when the repository could
// not be asked at all, and when our own disk is full.
func fromRepository(err error) bool {
	var (
		f       *fault.Error
		httpErr *githttp.Err
		network *net.OpError
		dns     *net.DNSError
	)
	switch err = unexpected(err); {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		isDiskFull(err), isCertificate(err),
		errors.Is(err, errCorrupt),
		errors.Is(err, transport.ErrAuthenticationRequired),
		errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrRepositoryNotFound),
		errors.As(err, &f), errors.As(err, &httpErr), errors.As(err, &network), errors.As(err, &dns):
		return false
	}
	return true
}

// unexpected unwraps go-git's UnexpectedError, which says only "unexpected client error".
func unexpected(err error) error {
	if e := (*plumbing.UnexpectedError)(nil); errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isCertificate(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
	)
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &host)
}

// diskFault turns an error about our own files into a fault.
func diskFault(op, what string, err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f
	}
	switch {
	case isDiskFull(err):
		return fault.Wrap(op, fault.Exhausted, err).Say(what).Hint("make room in the state directory")
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(op, fault.Forbidden, err).
			Say(what).
			Hint("the user that runs the server must own the state directory")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(op, fault.Unavailable, err).Say(what)
	}
	return fault.Wrap(op, fault.Internal, err).Say(what)
}

// short abbreviates a commit for people.
func short(hash string) string {
	if len(hash) < 7 {
		return hash
	}
	return hash[:7]
}

// enumerate returns "a, b, c and 4 more".
func enumerate(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

var errEmpty = errors.New("the repository is empty")

// IsEmpty reports whether a fetch failed because the repository has no commit yet.
func IsEmpty(err error) bool { return errors.Is(err, errEmpty) }
