package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ordain.dev/ordain/api/client"
	"ordain.dev/ordain/internal/fault"
)

// client returns a client of the server, which sends the token of the variable ORDAIN_TOKEN or of the last login.
func (r *remote) client() (*client.Client, error) {
	server, err := r.anonymous()
	if err != nil {
		return nil, err
	}
	token := os.Getenv("ORDAIN_TOKEN")
	if token == "" {
		logins, err := readLogins()
		if err != nil {
			return nil, err
		}
		token = logins[server.Address()]
	}
	return server.WithToken(token), nil
}

// loginsFile returns the file that keeps the tokens of logins, by the address of the server.
func loginsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fault.Wrap("cli.login", fault.Invalid, err).Say("there is no place to keep a login").
			Hint("set HOME or XDG_CONFIG_HOME, or pass a token in ORDAIN_TOKEN")
	}
	return filepath.Join(dir, "ordain", "logins.json"), nil
}

// readLogins returns the tokens by address. Without a home there are none.
func readLogins() (map[string]string, error) {
	logins := map[string]string{}
	file, err := loginsFile()
	if err != nil {
		return logins, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return logins, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &logins)
	}
	if err != nil {
		return nil, fault.Wrap("cli.login", fault.Invalid, err).Say("the file with your logins cannot be read").
			Hint("remove " + file + " and log in again")
	}
	return logins, nil
}

// keepLogin keeps the token of a server in a file that only this user can read; an empty token forgets it.
func keepLogin(address, token string) error {
	file, err := loginsFile()
	if err != nil {
		return err
	}
	logins, err := readLogins()
	if err != nil {
		return err
	}
	if token == "" {
		delete(logins, address)
	} else {
		logins[address] = token
	}
	text, err := json.MarshalIndent(logins, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return replaceWhole(file, 0o600, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}

// secrets asks for secrets, one after another: on a terminal with a prompt and without showing them, else a line each
// from standard input.
type secrets struct {
	c     *cobra.Command
	lines *bufio.Reader
}

func (s *secrets) ask(prompt string) (string, error) {
	if in, ok := s.c.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(s.c.ErrOrStderr(), prompt+": ")
		text, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(s.c.ErrOrStderr())
		return string(text), err
	}
	line, err := s.line()
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", usageError{errors.New("standard input ended; it should have a line: " + strings.ToLower(prompt))}
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// line reads a line of standard input, which may be shown.
func (s *secrets) line() (string, error) {
	if s.lines == nil {
		in := s.c.InOrStdin()
		if in == nil {
			in = strings.NewReader("")
		}
		s.lines = bufio.NewReader(io.LimitReader(in, 64<<10))
	}
	return s.lines.ReadString('\n')
}

// askNew asks for a new password; on a terminal twice.
func (s *secrets) askNew(prompt string) (string, error) {
	first, err := s.ask(prompt)
	if err != nil || s.lines != nil {
		return first, err
	}
	second, err := s.ask(prompt + " again")
	if err == nil && first != second {
		err = errors.New("the two passwords differ")
	}
	return first, err
}

func newLogin() *cobra.Command {
	r := &remote{}
	c := command("login USER", "Log in to a server; the password is asked for, or read from standard input",
		func(c *cobra.Command, args []string) error {
			server, err := r.anonymous()
			if err != nil {
				return err
			}
			if !private(server.Address()) {
				return usageError{errors.New("the password would cross the network unencrypted: " +
					"name the server as https://…")}
			}
			password, err := (&secrets{c: c}).ask("Password")
			if err != nil {
				return err
			}
			var answer struct{ Token string }
			body := row{"username": args[0], "password": password}
			if err := server.Call(c.Context(), post, "/api/v2/login", "", body, &answer); err != nil {
				return err
			}
			return keepLogin(server.Address(), answer.Token)
		})
	r.add(c)
	return c
}

// private reports whether nobody can listen on the way to a server: it is on this machine, or the connection is
// encrypted.
func private(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func newLogout() *cobra.Command {
	r := &remote{}
	c := command("logout", "Log out of a server", func(c *cobra.Command, _ []string) error {
		server, err := r.client()
		if err != nil {
			return err
		}
		err = server.Call(c.Context(), post, "/api/v2/logout", "", nil, nil)
		if fault.Is(err, fault.Unauthorized) { // it has ended already
			err = nil
		}
		return errors.Join(err, keepLogin(server.Address(), ""))
	})
	r.add(c)
	return c
}
