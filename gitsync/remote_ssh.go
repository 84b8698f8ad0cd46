package gitsync

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/reach"
)

const opSSH = "gitsync.SSH"

// openSSH returns the remote that is reached over SSH. It does not connect to it yet.
func (s *Syncer) openSSH(p place) (*web, error) {
	session, err := s.sshSession(p)
	if err != nil {
		return nil, err
	}
	return &web{place: p, session: session, depth: p.depth}, nil
}

// sshSession returns a session in which git-upload-pack runs. It does not connect yet.
func (s *Syncer) sshSession(p place) (session *sshSession, err error) {
	session = &sshSession{place: p, program: "git-upload-pack", learned: s.cfg.Learned, said: &limited{max: 4 << 10},
		proxy: p.trust.Proxy, reach: s.cfg.Reach}
	session.methods, err = s.sshMethods(p, session)
	return session, err
}

// sshMethods returns how we authenticate: with the key of the source, or with the
// keys of the SSH agent if it has none, and with its password.
func (s *Syncer) sshMethods(p place, session *sshSession) ([]ssh.AuthMethod, error) {
	c := p.credentials
	var methods []ssh.AuthMethod
	if c.SSHKey != "" {
		signer, err := parseKey(c)
		if err != nil {
			return nil, err
		}
		methods = append(methods, ssh.PublicKeys(signer))
	} else if s.cfg.SSHAgent != "" {
		methods = append(methods, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			conn, err := net.DialTimeout("unix", s.cfg.SSHAgent, 5*time.Second)
			if err != nil {
				return nil, fmt.Errorf("the SSH agent does not answer: %w", err)
			}
			session.agent = conn // open until the session ends, because it signs
			return agent.NewClient(conn).Signers()
		}))
	}
	if c.Password != "" {
		methods = append(methods, ssh.Password(c.Password))
	}
	if len(methods) == 0 {
		return nil, fault.New(opSSH, fault.Unauthorized, p.shown+" is reached over SSH, and there is no key for it").
			Hint("set the secret git-ssh-key of the environment or of its project " +
				"to a private key that may read the repository")
	}
	return methods, nil
}

// parseKey parses the SSH key of credentials.
func parseKey(c Credentials) (ssh.Signer, error) {
	key := []byte(strings.TrimSpace(c.SSHKey) + "\n")
	var signer ssh.Signer
	var err error
	if c.SSHPassphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(c.SSHPassphrase))
		if err != nil && !errors.Is(err, x509.IncorrectPasswordError) {
			if plain, plainErr := ssh.ParsePrivateKey(key); plainErr == nil { // the key has no passphrase
				return plain, nil
			}
		}
	} else {
		signer, err = ssh.ParsePrivateKey(key)
	}
	var missing *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return signer, nil
	case errors.As(err, &missing):
		return nil, fault.New(opSSH, fault.Unauthorized, "the SSH key is protected by a passphrase").
			Hint("set the secret git-ssh-passphrase")
	case errors.Is(err, x509.IncorrectPasswordError):
		return nil, fault.New(opSSH, fault.Unauthorized, "the passphrase of the SSH key is wrong").
			Hint("set the secret git-ssh-passphrase again")
	}
	// The cause is left out, because it could show a part of the key.
	return nil, fault.New(opSSH, fault.Invalid, "the secret git-ssh-key is not a private key that can be read").
		Hint("set it to the whole file that ssh-keygen -t ed25519 wrote, the one without .pub")
}

// sshSession is one connection on which git-upload-pack or git-receive-pack runs.
type sshSession struct {
	place   place
	program string
	methods []ssh.AuthMethod
	learned func(scope, line string) error
	proxy   string
	reach   *reach.Rules
	agent   net.Conn

	client *ssh.Client
	remote *ssh.Session
	in     io.WriteCloser
	out    io.Reader
	said   *limited // the standard error of the program on the server
	exited chan error
}

// within closes the connection when ctx ends during do, and then returns the cause of that.
func (s *sshSession) within(ctx context.Context, conn io.Closer, do func() error) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err := do()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// connect dials, checks the key of the server, and authenticates.
func (s *sshSession) connect(ctx context.Context) error {
	at := s.place.ssh
	conn, err := dialThrough(ctx, s.reach, s.proxy, at.address())
	if err != nil {
		return err
	}
	check, algorithms, err := s.hostKeys()
	if err != nil {
		conn.Close()
		return err
	}
	user := at.user
	if user == "" {
		user = s.place.credentials.Username
	}
	if user == "" {
		user = "git"
	}
	err = s.within(ctx, conn, func() error {
		c, channels, requests, err := ssh.NewClientConn(conn, at.address(), &ssh.ClientConfig{
			User: user, Auth: s.methods, HostKeyCallback: check, HostKeyAlgorithms: algorithms,
			ClientVersion: "SSH-2.0-ordain",
		})
		if err != nil {
			return err
		}
		s.client = ssh.NewClient(c, channels, requests)
		return nil
	})
	if err != nil {
		conn.Close()
		if strings.Contains(err.Error(), "unable to authenticate") {
			return fault.New(opSSH, fault.Unauthorized,
				fmt.Sprintf("%s refused the SSH key of the user %s", s.place.shown, user)).
				Hint("add the public half of the key to the forge, as a deploy key of the repository, " +
					"or set the secret git-ssh-key again")
		}
	}
	return err
}

// hostKeys returns the check of the server's key, and the kinds of keys to ask for:
// those that we know of this server, which may have others too.
func (s *sshSession) hostKeys() (ssh.HostKeyCallback, []string, error) {
	db, err := parseKnownHosts(s.place.trust.KnownHosts)
	if err != nil {
		return nil, nil, fault.New(opSSH, fault.Invalid,
			"the known hosts of this environment cannot be read: "+printable(err.Error())).
			Hint("each line names hosts, the kind of a key and the key, as ssh-keyscan prints them")
	}
	check := func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := db.HostKeyCallback()(host, remote, key)
		line := knownhosts.Line([]string{host}, key)
		print := fmt.Sprintf("%s (%s)", ssh.FingerprintSHA256(key), key.Type())
		switch {
		case err == nil:
			return nil
		case knownhosts.IsHostUnknown(err):
			if s.place.trust.AcceptNew {
				if s.learned == nil {
					return nil
				}
				return s.learned(s.place.trust.Scope, line)
			}
			return fault.New(opSSH, fault.Unauthorized,
				fmt.Sprintf("the SSH server of %s is not known: its key is %s", s.place.shown, print)).
				Hint("compare the fingerprint with the one that the forge publishes; " +
					"if it is the same, add this line to the project's known hosts: " + line)
		case knownhosts.IsHostKeyChanged(err):
			return fault.New(opSSH, fault.Unauthorized,
				fmt.Sprintf("the key of the SSH server of %s changed: it is %s now. "+
					"Somebody may intercept the connection", s.place.shown, print)).
				Hint("ask who runs it; only if they changed the key, replace its lines in the known hosts by: " + line)
		}
		return fault.New(opSSH, fault.Unauthorized,
			fmt.Sprintf("the key of the SSH server of %s, %s, is refused: %s", s.place.shown, print,
				printable(err.Error()))).
			Hint("ask who runs it, and see the lines of the known hosts about it")
	}
	return check, db.HostKeyAlgorithms(s.place.ssh.address()), nil
}

// parseKnownHosts reads lines of OpenSSH's known_hosts.
func parseKnownHosts(text string) (*knownhosts.HostKeyDB, error) {
	f, err := os.CreateTemp("", "ordain-known-hosts-*") // the library reads files only
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	db, err := knownhosts.NewDB(f.Name())
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), f.Name(), "line"))
	}
	return db, nil
}

// AdvertisedReferencesContext starts the program on the server and reads which references the server has.
func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	adv := packp.NewAdvRefs()
	err := s.within(ctx, s.client, func() (err error) {
		if s.remote, err = s.client.NewSession(); err != nil {
			return err
		}
		if s.in, err = s.remote.StdinPipe(); err != nil {
			return err
		}
		if s.out, err = s.remote.StdoutPipe(); err != nil {
			return err
		}
		s.remote.Stderr = s.said
		if err = s.remote.Start(s.program + " " + sshQuote(s.place.ssh.path)); err != nil {
			return err
		}
		s.exited = make(chan error, 1)
		go func() { s.exited <- s.remote.Wait() }()
		return adv.Decode(s.out)
	})
	switch {
	case err == nil:
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return nil, transport.ErrEmptyRemoteRepository
	case context.Cause(ctx) != nil:
		return nil, err
	default:
		return nil, s.explain(ctx, err)
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	return adv, nil
}

// explain finds out why the server named no references: the program writes the
// reason to its standard error before it exits.
func (s *sshSession) explain(ctx context.Context, err error) error {
	if s.exited == nil {
		return err
	}
	said, why := s.reason(ctx, err)
	if s.program == "git-receive-pack" {
		return s.explainPush(why, said)
	}
	return why
}

// reason waits for the program to exit and returns what it said, and an error for that.
func (s *sshSession) reason(ctx context.Context, err error) (said string, why error) {
	s.in.Close()
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-s.exited: // its standard error is complete
	case <-timer.C:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	said = s.said.text()
	if line := (*pktline.ErrorLine)(nil); errors.As(err, &line) {
		said += line.Text
	}
	lower := strings.ToLower(said + err.Error())
	for _, hint := range []string{
		"not found", "does not appear to be a git repository", "does not exist", "could not be found", "no such",
	} {
		if strings.Contains(lower, hint) {
			return said, transport.ErrRepositoryNotFound
		}
	}
	for _, hint := range []string{"denied", "forbidden", "not allowed", "access rights"} {
		if strings.Contains(lower, hint) {
			return said, transport.ErrAuthorizationFailed
		}
	}
	if said == "" {
		return said, fmt.Errorf("%w: %w", errNotGit, err)
	}
	return said, fault.New(opSSH, fault.Unavailable,
		s.place.shown+" could not be read: "+printable(strings.Join(strings.Fields(said), " "))).
		Hint("ask who runs the Git server what it means; it is tried again")
}

// UploadPack asks for objects.
func (s *sshSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.client.Close() })
	res := packp.NewUploadPackResponse(req)
	err := func() error {
		if err := req.UploadRequest.Encode(s.in); err != nil {
			return err
		}
		if err := req.UploadHaves.Encode(s.in, false); err != nil {
			return err
		}
		if _, err := io.WriteString(s.in, "0009done\n"); err != nil {
			return err
		}
		if err := s.in.Close(); err != nil {
			return err
		}
		return res.Decode(closing{s.out, func() { stop() }})
	}()
	if err != nil {
		stop()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return res, nil
}

// Close ends the connection.
func (s *sshSession) Close() error {
	if s.agent != nil {
		s.agent.Close()
	}
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// closing is a reader that calls done when it is closed.
type closing struct {
	io.Reader
	done func()
}

func (c closing) Close() error { c.done(); return nil }

// sshQuote quotes an argument for the shell of the server, like git.
func sshQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}
