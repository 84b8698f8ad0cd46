package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// Config says which machine to log in to, and how.
type Config struct {
	Host string
	Port int // 22 if it is 0
	User string
	Key  []byte // a private key without a passphrase, as ssh-keygen writes it
	// HostKeys are the pinned keys, one of which the machine has to show.
	HostKeys []string
	// Learn accepts any host key if none is pinned: the caller pins Client.HostKey. Only Confirm does this.
	Learn   bool
	Timeout time.Duration // of connecting and logging in; 20 seconds if it is 0
	// Beat is the time between signs of life; 15 seconds if it is 0. Either side gives up after four of silence.
	Beat time.Duration
}

// Client is a login to a machine. It may be used by several goroutines at once.
type Client struct {
	config  Config
	address string
	conn    *gossh.Client
	hostKey string
	done    chan struct{} // is closed when the connection has ended
}

// Dial logs in. The error says for people what is wrong: its kind is Unavailable if the machine cannot be reached and
// another try may help, and Unauthorized if it does not accept the key. A host key that is not pinned, and a private
// key that cannot be used, are a plugin.Refused.
func Dial(ctx context.Context, config Config) (*Client, error) {
	if config.Port == 0 {
		config.Port = 22
	}
	if config.Timeout <= 0 {
		config.Timeout = 20 * time.Second
	}
	if config.Beat <= 0 {
		config.Beat = 15 * time.Second
	}
	signer, err := parseKey(config.Key)
	if err != nil {
		return nil, err
	}
	pinned, err := parseHostKeys(config.HostKeys)
	if err != nil {
		return nil, &plugin.Refused{Err: err}
	}
	address := net.JoinHostPort(config.Host, strconv.Itoa(config.Port))
	host := &checker{pinned: pinned, learn: config.Learn}

	ctx, cancel := context.WithTimeout(ctx, config.Timeout)
	defer cancel()
	tcp, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, unreachable(address, config.Timeout, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	conn, channels, requests, err := gossh.NewClientConn(tcp, address, &gossh.ClientConfig{
		User:              config.User,
		Auth:              []gossh.AuthMethod{gossh.PublicKeys(signer)},
		HostKeyCallback:   host.check,
		HostKeyAlgorithms: algorithms(pinned),
		ClientVersion:     "SSH-2.0-Ordain",
	})
	if !stop() && err == nil { // the time was over just when the login succeeded
		_ = conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		_ = tcp.Close()
		return nil, loginFailed(ctx, config, address, signer, host, err)
	}
	c := &Client{
		config: config, address: address, conn: gossh.NewClient(conn, channels, requests), hostKey: Line(host.shown),
		done: make(chan struct{}),
	}
	go func() {
		_ = c.conn.Wait()
		close(c.done)
	}()
	go c.keepAlive()
	return c, nil
}

// Close ends the connection, and what runs over it.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// HostKey is the key that the machine showed, in the form in which it is pinned.
func (c *Client) HostKey() string { return c.hostKey }

// Peer is the address that the client is connected to.
func (c *Client) Peer() net.Addr { return c.conn.RemoteAddr() }

// keepAlive ends the connection when the machine does not answer any more, so that nobody waits for it.
func (c *Client) keepAlive() {
	tick := time.NewTicker(c.config.Beat)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		giveUp := time.AfterFunc(3*c.config.Beat, func() { _ = c.conn.Close() })
		_, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil)
		giveUp.Stop()
		if err != nil {
			return
		}
	}
}

func parseKey(key []byte) (gossh.Signer, error) {
	signer, err := gossh.ParsePrivateKey(key)
	var locked *gossh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, &plugin.Refused{Err: fault.New("ssh.Dial", fault.Invalid,
			"the private key is protected by a passphrase, which nobody can enter here").
			Hint("make a key without one (ssh-keygen -t ed25519 -N ''), " +
				"and upload it as the provider's ssh_keys resource")}
	case err != nil: // the parser's own error may quote the file
		return nil, &plugin.Refused{Err: fault.New("ssh.Dial", fault.Invalid,
			"the file of the private key has no private key that can be used").
			Hint("upload the private key, and not the public one (.pub), as the provider's ssh_keys resource")}
	}
	return signer, nil
}

// unreachable says why there is no connection.
func unreachable(address string, limit time.Duration, err error) error {
	f := fault.Wrap("ssh.Dial", fault.Unavailable, err)
	var name *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return f.Say(address + " refuses the connection").
			Hint("the machine runs, but no SSH server does on this port (yet); start it, or correct the port")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return f.Say("there is no route to " + address).
			Hint("check that the machine runs, and the network between the provisioner and it")
	case errors.As(err, &name):
		return f.Say("the name of " + address + " has no address").
			Hint("correct the machine's address, or its DNS entry")
	case errors.Is(err, context.Canceled):
		return f.Say("connecting to " + address + " was stopped")
	case isTimeout(err):
		return f.Say(fmt.Sprintf("%s does not answer within %s", address, limit)).
			Hint("check that the machine runs, and that no firewall drops connections to this port")
	}
	return f.Say("cannot connect to " + address)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// loginFailed says why there is a connection, and no login.
func loginFailed(
	ctx context.Context, config Config, address string, signer gossh.Signer, host *checker, err error,
) error {
	f := fault.Wrap("ssh.Dial", fault.Unavailable, err)
	switch {
	case host.wrong != nil:
		return host.wrong
	case errors.Is(ctx.Err(), context.Canceled):
		return f.Say("logging in to " + address + " was stopped")
	case ctx.Err() != nil:
		return f.Say(fmt.Sprintf("%s takes connections, and does not let in within %s", address, config.Timeout)).
			Hint("the machine may be overloaded or hang; look at its console")
	case strings.Contains(err.Error(), "unable to authenticate"):
		f.Kind = fault.Unauthorized
		return f.Say(fmt.Sprintf("%s does not let %s in with the key %s",
			address, config.User, gossh.FingerprintSHA256(signer.PublicKey()))).
			Hint("add the public key to the user's authorized keys on the machine, or correct the user or the key")
	}
	return f.Say("cannot log in to " + address)
}
