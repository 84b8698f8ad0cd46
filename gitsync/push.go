package gitsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"ordain.dev/ordain/internal/fault"
)

// refChange moves a reference; from is the zero hash to make it.
type refChange struct {
	name     string
	from, to plumbing.Hash
}

// pushSession speaks with git-receive-pack of one repository. It is used for one push.
type pushSession interface {
	// AdvertisedReferencesContext asks for the references. It is called first.
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	// send sends the request and returns the answer, which the caller reads to its end and closes.
	send(ctx context.Context, request *bytes.Buffer) (io.ReadCloser, error)
	Close() error
}

// pusher is a repository to push to. It is opened for one push, and closed after it.
type pusher struct {
	place   place
	session pushSession
	adv     *packp.AdvRefs
}

// dialPush returns the repository of a place, to push to. It does not connect to it yet.
func (s *Syncer) dialPush(p place) (*pusher, error) {
	var session pushSession
	var err error
	switch {
	case p.local != "":
		session = &localPush{path: p.local}
	case p.ssh != nil:
		session, err = s.sshPush(p)
	default:
		session, err = s.httpPush(p)
	}
	return &pusher{place: p, session: session}, err
}

// askPush asks for the references, for at most AskTimeout. The connection lives until ctx ends.
func (s *Syncer) askPush(ctx context.Context, to *pusher) (map[string]plumbing.Hash, error) {
	short, cancel := context.WithTimeout(ctx, s.cfg.AskTimeout)
	defer cancel()
	adv, err := to.session.AdvertisedReferencesContext(short)
	if err != nil {
		return nil, err
	}
	to.adv = adv
	return adv.References, nil
}

func (t *pusher) close() { _ = t.session.Close() }

// push sends a pack and moves a reference. The error is a staleError when the reference was moved by somebody else, and
// a *refusedError when the remote refuses the move for another reason.
func (t *pusher) push(ctx context.Context, change refChange, pack []byte) error {
	if !t.adv.Capabilities.Supports(capability.ReportStatus) {
		return fault.New(opWrite, fault.Unavailable, t.place.shown+" does not say whether it takes a commit").
			Hint("its Git server is too old to be written to")
	}
	req := packp.NewReferenceUpdateRequest()
	wanted := []capability.Capability{capability.ReportStatus}
	band := sideband.Type(-1)
	switch {
	case t.adv.Capabilities.Supports(capability.Sideband64k):
		wanted, band = append(wanted, capability.Sideband64k), sideband.Sideband64k
	case t.adv.Capabilities.Supports(capability.Sideband):
		wanted, band = append(wanted, capability.Sideband), sideband.Sideband
	}
	for _, one := range wanted {
		if err := req.Capabilities.Set(one); err != nil {
			return err
		}
	}
	req.Commands = []*packp.Command{
		{Name: plumbing.ReferenceName(change.name), Old: change.from, New: change.to},
	}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	var body bytes.Buffer
	if err := req.Encode(&body); err != nil {
		return err
	}
	answer, err := t.session.send(ctx, &body)
	if err != nil {
		return err
	}
	defer answer.Close()
	said := &limited{max: 8 << 10}
	var report io.Reader = io.LimitReader(answer, 1<<20)
	if band >= 0 {
		d := sideband.NewDemuxer(band, report)
		d.Progress = said
		report = d
	}
	status := packp.NewReportStatus()
	if err := status.Decode(report); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fault.Wrap(opWrite, fault.Unavailable, t.place.credentials.redactor().Error(err)).
			Say("cannot tell whether " + t.place.shown + " took the commit").
			Hint("try again: nothing is committed twice")
	}
	return t.place.judge(change, status, said.text())
}

// refusedError means that a remote understood a push and did not take it.
type refusedError struct {
	ref    string
	status string // a few words for programs, such as "pre-receive hook declined"
	said   string // what hooks and the server wrote for people, as lines
}

func (e *refusedError) Error() string {
	lines := strings.Split(e.said, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "remote:"))
	}
	words := strings.Fields(strings.Join(append(lines, "("+e.status+")"), " "))
	text := strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.Join(words, " "), "?"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// maxReason is how many bytes of a remote's reason are kept.
const maxReason = 1000

// judge finds out from the answer of a remote whether it took the push.
func (p place) judge(change refChange, status *packp.ReportStatus, said string) error {
	refused := &refusedError{ref: change.name, said: p.credentials.redactor().Text(said)}
	if status.UnpackStatus != "ok" {
		refused.status = status.UnpackStatus
		return refused
	}
	for _, one := range status.CommandStatuses {
		if one.ReferenceName.String() != change.name {
			continue
		}
		if one.Status == "ok" {
			return nil
		}
		refused.status = p.credentials.redactor().Text(one.Status)
		if refused.mentions(staleWords) && !refused.mentions(protectedWords) {
			return &staleError{refused.Error()}
		}
		return refused
	}
	refused.status = "the answer does not name the branch"
	return refused
}

// Words in the answers of Git and of forges, in lower case.
var (
	// staleWords: the branch is not, or will soon not be, where the push expects it.
	staleWords = []string{
		"non-fast-forward", "fetch first", "stale info", "incorrect old value", "cannot lock ref",
		"failed to update ref", "failed to lock", "unable to lock", "reference already exists", "remote ref updated",
	}
	// protectedWords: a rule keeps this push from the branch, and another way may be open.
	protectedWords = []string{
		"protected", "hook declined", "rule violation", "pull request", "merge request", "tf402455", "not permitted",
		"not allowed to push", "prohibited",
	}
	// readOnlyWords: we may not write to the repository at all.
	readOnlyWords = []string{
		"permission denied", "read-only", "read only", "insufficient permission", "write access",
		"not authorized to write", "unable to create temporary",
	}
)

// mentions reports whether the refusal holds one of the words.
func (e *refusedError) mentions(words []string) bool { return mentions(e.status+"\n"+e.said, words) }

func mentions(text string, words []string) bool {
	text = strings.ToLower(text)
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// pushFault turns an error of a push into a fault. The repository could be read just before.
func (p place) pushFault(err error) error {
	var known *fault.Error
	var refused *refusedError
	switch {
	case errors.As(err, new(*staleError)):
		return err
	case errors.As(err, &refused):
		return p.refusedFault(refused)
	case errors.As(err, &known):
		return err
	case errors.Is(err, transport.ErrAuthorizationFailed), errors.Is(err, transport.ErrRepositoryNotFound):
		return p.readOnlyFault("")
	case errors.Is(err, transport.ErrAuthenticationRequired):
		if p.credentials == (Credentials{}) {
			return fault.New(opWrite, fault.Unauthorized, p.shown+" asks for credentials to be written to").
				Hint("set the environment's Git user name and password, or a token as the password, that may write")
		}
		return p.readOnlyFault("")
	}
	return p.remoteFault(opWrite, err)
}

// readOnlyFault returns the fault for a repository that can be read and not written to. why is what the remote said.
func (p place) readOnlyFault(why string) error {
	if why != "" {
		why = ": " + why
	}
	if p.local != "" {
		return fault.New(opWrite, fault.Forbidden, p.shown+" may not be written to by the server"+why).
			Hint("make the user that runs the server the owner of the repository")
	}
	advice := "set the environment's Git user name and password, or a token as the password, that may write"
	if p.ssh != nil {
		advice = "let the key of the environment write to the repository at the forge, or set the secret git-ssh-key " +
			"to one that may"
	} else if p.credentials != (Credentials{}) {
		advice = "give the user or token write access to the repository"
	}
	return fault.New(opWrite, fault.Forbidden, p.shown+" may only be read with these credentials"+why).Hint(advice)
}

// refusedFault returns the fault for a push that the remote did not take.
func (p place) refusedFault(r *refusedError) error {
	branch := printable(strings.TrimPrefix(r.ref, "refs/heads/"))
	switch {
	case r.mentions([]string{"currently checked out"}):
		return fault.New(opWrite, fault.Conflict,
			fmt.Sprintf("the branch %s is checked out in the working copy %s, which Git protects from pushes", branch,
				p.shown)).
			Hint("let the environment use a bare repository, or set receive.denyCurrentBranch to updateInstead there")
	case r.mentions(protectedWords):
		return fault.Wrap(opWrite, fault.Forbidden, ErrProtected).
			Say(fmt.Sprintf("%s refuses the commit on the branch %s: %v", p.shown, branch, r)).
			Hint("commit by a pull request, or let the user of the environment's credentials push to the branch")
	case r.mentions(readOnlyWords):
		return p.readOnlyFault(r.Error())
	}
	return fault.New(opWrite, fault.Unavailable, fmt.Sprintf("%s did not take the commit on the branch %s: %v", p.shown,
		branch, r)).
		Hint("ask who runs the Git server what it means")
}
