package gitsync

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"ordain.dev/ordain/internal/fault"
)

// go-git v5 speaks versions 0 and 1 of Git's protocol, as every Git server does. A few
// servers insist on version 2. When one refuses to list its references, we ask once
// more in version 2 (https://git-scm.com/docs/protocol-v2), and go on in the version
// that it answers.

// httpSession speaks version 0, and version 2 with servers that insist on it.
type httpSession struct {
	packSession
	v2 *v2Session
	// insists is set when the server answered in version 2.
	insists bool
}

// AdvertisedReferencesContext implements packSession.
func (s *httpSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	adv, err := s.packSession.AdvertisedReferencesContext(ctx)
	if err == nil || !mayInsist(ctx, err) {
		return adv, err
	}
	adv, refusal := s.v2.references(ctx)
	switch {
	case errors.Is(refusal, errNotV2):
		return nil, err // of version 0
	case refusal != nil:
		return nil, refusal
	}
	s.insists = true
	return adv, nil
}

// UploadPack implements packSession.
func (s *httpSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if s.insists {
		return s.v2.uploadPack(ctx, req)
	}
	return s.packSession.UploadPack(ctx, req)
}

// mayInsist reports whether a server that refused version 0 may speak version 2.
func mayInsist(ctx context.Context, err error) bool {
	var network net.Error
	var refused *githttp.Err
	switch {
	case ctx.Err() != nil,
		errors.Is(err, transport.ErrAuthenticationRequired),
		errors.Is(err, transport.ErrRepositoryNotFound),
		errors.Is(err, transport.ErrEmptyRemoteRepository):
		return false
	case errors.As(unexpected(err), &refused):
		return refused.StatusCode() != http.StatusTooManyRequests
	}
	return !errors.As(err, &network)
}

// errNotV2 means that a server does not answer in version 2.
var errNotV2 = errors.New("the server does not speak version 2 of Git's protocol")

// v2Session speaks version 2 of Git's protocol over HTTP.
type v2Session struct {
	client *http.Client
	base   string // URL of the repository, without a slash at its end
	auth   *githttp.BasicAuth
	place  place
	// has are the capabilities of the server, with their values.
	has map[string]string
}

// maxAdvertised bounds the bytes that a server may list its references in.
const maxAdvertised = 256 << 20

// references asks for the capabilities of the server, and then for its references.
func (s *v2Session) references(ctx context.Context) (*packp.AdvRefs, error) {
	if err := s.capabilities(ctx); err != nil {
		return nil, err
	}
	if format := s.has["object-format"]; format != "" && format != "sha1" {
		return nil, fault.New(opFetch, fault.Invalid,
			"the repository "+s.place.shown+" has a format that is not supported").
			Hint("use a repository with SHA-1 object names")
	}
	args := []string{"peel", "symrefs", "ref-prefix HEAD", "ref-prefix refs/heads/", "ref-prefix refs/tags/"}
	for _, name := range s.place.also {
		args = append(args, "ref-prefix "+name)
	}
	answer, err := s.command(ctx, "ls-refs", args)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	adv := packp.NewAdvRefs()
	in := newPackets(io.LimitReader(answer, maxAdvertised))
	for {
		line, mark, err := in.next()
		if err != nil {
			return nil, err
		}
		if mark == packetFlush {
			break
		}
		if err := advertise(adv, line); err != nil {
			return nil, err
		}
	}
	for _, one := range []capability.Capability{capability.OFSDelta, capability.Sideband64k, capability.NoProgress} {
		if err := adv.Capabilities.Set(one); err != nil {
			return nil, err
		}
	}
	if strings.Contains(" "+s.has["fetch"]+" ", " shallow ") {
		if err := adv.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
	}
	if len(adv.References) == 0 && adv.Head == nil {
		return nil, transport.ErrEmptyRemoteRepository
	}
	return adv, nil
}

// advertise adds a line of ls-refs: "hash name[ symref-target:name][ peeled:hash]".
func advertise(adv *packp.AdvRefs, line string) error {
	fields := strings.Split(line, " ")
	if len(fields) < 2 || !plumbing.IsHash(fields[0]) {
		return errNotGit
	}
	hash, name := plumbing.NewHash(fields[0]), fields[1]
	if name == "HEAD" {
		adv.Head = &hash
	} else {
		adv.References[name] = hash
	}
	for _, more := range fields[2:] {
		if target, ok := strings.CutPrefix(more, "symref-target:"); ok && name == "HEAD" {
			if err := adv.Capabilities.Add(capability.SymRef, "HEAD:"+target); err != nil {
				return err
			}
		}
		if peeled, ok := strings.CutPrefix(more, "peeled:"); ok && plumbing.IsHash(peeled) {
			adv.Peeled[name] = plumbing.NewHash(peeled)
		}
	}
	return nil
}

// capabilities reads what the server can do. The error is errNotV2 when it does not answer in version 2.
func (s *v2Session) capabilities(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/info/refs?service=git-upload-pack", nil)
	if err != nil {
		return err
	}
	res, err := s.do(req)
	if err != nil {
		return errNotV2
	}
	defer res.Body.Close()
	// A redirect, which http.Client followed without the credentials if it led to another host.
	if end := res.Request.URL; end.Host != req.URL.Host || end.Path != req.URL.Path {
		at, ok := strings.CutSuffix(end.EscapedPath(), "/info/refs")
		if !ok {
			return errNotV2
		}
		if end.Host != req.URL.Host || end.Scheme != req.URL.Scheme {
			s.auth = nil
		}
		s.base = end.Scheme + "://" + end.Host + at
	}
	in := newPackets(io.LimitReader(res.Body, 1<<20))
	s.has = map[string]string{}
	for first := true; ; {
		line, mark, err := in.next()
		switch {
		case err != nil:
			return errNotV2
		case strings.HasPrefix(line, "# service="), mark == packetFlush && first:
			continue
		case mark != packetData:
			return nil
		case first && line != "version 2":
			return errNotV2
		}
		if !first {
			name, value, _ := strings.Cut(line, "=")
			s.has[name] = value
		}
		first = false
	}
}

// uploadPack asks for a pack.
func (s *v2Session) uploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	args := []string{"no-progress", "ofs-delta"}
	for _, h := range req.Wants {
		args = append(args, "want "+h.String())
	}
	for _, h := range req.Shallows {
		args = append(args, "shallow "+h.String())
	}
	if depth, ok := req.Depth.(packp.DepthCommits); ok && depth > 0 {
		args = append(args, "deepen "+strconv.Itoa(int(depth)))
	}
	for _, h := range req.Haves {
		args = append(args, "have "+h.String())
	}
	answer, err := s.command(ctx, "fetch", append(args, "done"))
	if err != nil {
		return nil, err
	}
	in := newPackets(answer)
	res := packp.NewUploadPackResponseWithPackfile(req, struct {
		io.Reader
		io.Closer
	}{in.in, answer})
	for section := ""; ; {
		line, mark, err := in.next()
		switch {
		case err != nil:
		case mark == packetDelimiter:
			section = ""
			continue
		case mark != packetData:
			err = io.ErrUnexpectedEOF // there is no pack
		case section == "" && line == "packfile":
			return res, nil // what follows is the pack, in a side band
		case section == "":
			section = line
		case section == "shallow-info":
			what, name, _ := strings.Cut(line, " ")
			switch {
			case !plumbing.IsHash(name):
				err = errNotGit
			case what == "shallow":
				res.Shallows = append(res.Shallows, plumbing.NewHash(name))
			case what == "unshallow":
				res.Unshallows = append(res.Unshallows, plumbing.NewHash(name))
			}
		}
		if err != nil {
			answer.Close()
			return nil, err
		}
	}
}

// command sends a command with its arguments, and returns the answer.
func (s *v2Session) command(ctx context.Context, name string, args []string) (io.ReadCloser, error) {
	var body bytes.Buffer
	send := pktline.NewEncoder(&body)
	head := []string{"command=" + name + "\n"}
	if s.has["agent"] != "" {
		head = append(head, "agent=ordain\n")
	}
	if s.has["object-format"] != "" {
		head = append(head, "object-format=sha1\n")
	}
	if err := send.EncodeString(head...); err != nil {
		return nil, err
	}
	body.WriteString("0001")
	for _, arg := range args {
		if err := send.EncodeString(arg + "\n"); err != nil {
			return nil, err
		}
	}
	if err := send.Flush(); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/git-upload-pack", &body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	req.Header.Set("Accept", "application/x-git-upload-pack-result")
	res, err := s.do(req)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// do sends a request in version 2, and returns the errors that go-git returns.
func (s *v2Session) do(req *http.Request) (*http.Response, error) {
	req.Header.Set("Git-Protocol", "version=2")
	if s.auth != nil {
		s.auth.SetAuth(req)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	return res, githttp.NewErr(res)
}

// packets reads packet lines. The scanner of go-git does not know the delimiters of version 2.
type packets struct{ in *bufio.Reader }

func newPackets(in io.Reader) *packets { return &packets{bufio.NewReader(in)} }

// packetMark says what a packet line is.
type packetMark int

const (
	packetFlush     packetMark = iota // 0000
	packetDelimiter                   // 0001
	packetEnd                         // 0002
	packetData
)

// next reads one packet line, without the line break at its end.
func (p *packets) next() (line string, mark packetMark, err error) {
	var head [4]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", 0, err
	}
	size, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil || size == 3 || size > 65520:
		return "", 0, errNotGit
	case size < 3:
		return "", packetMark(size), nil
	}
	text := make([]byte, size-4)
	if _, err := io.ReadFull(p.in, text); err != nil {
		return "", 0, io.ErrUnexpectedEOF
	}
	line = strings.TrimSuffix(string(text), "\n")
	if why, is := strings.CutPrefix(line, "ERR "); is {
		return "", 0, fmt.Errorf("the server says: %s", printable(why))
	}
	return line, packetData, nil
}
