package server

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/config"
)

// separated is what Server.separation says if nothing is missing.
const separated = "on: the code of each environment reaches nothing of the server's and of other environments"

// isolate decides how the code of environments is confined, and says in the log what is not. It
// returns nil if nothing is to be confined, or can be.
func (s *Server) isolate() (*isolation.Config, error) {
	o := s.cfg.Options
	if o.Isolation == "off" {
		s.separation = "off: compiles and handlers run with all rights of the server"
		s.log.Warn("compiles and handlers are not confined, because isolation.mode is off")
		return nil, nil
	}
	support := isolation.Detect()
	missing := support.Missing()
	c := &isolation.Config{
		Support: support, Read: o.IsolationRead, Write: o.IsolationWrite,
		Network: isolation.Network{None: o.IsolationNoNetwork, Ports: o.IsolationPorts},
	}
	if os.Geteuid() == 0 {
		switch {
		case o.IsolationFirstUser == 0:
			missing = append(missing, "isolation.first-user is 0, so environments have no users of their own")
		case !support.Users:
			missing = append(missing, "this server may not become other users, so environments have none of their own")
		case !isolation.Mapped(o.IsolationFirstUser, config.UsersMax):
			missing = append(missing, fmt.Sprintf("the user ids from %d on do not exist in this container, so "+
				"environments have no users of their own; set isolation.first-user", o.IsolationFirstUser))
		default:
			c.FirstUser = o.IsolationFirstUser
		}
	}
	if o.IsolationNoNetwork && !support.Namespaces || len(o.IsolationPorts) > 0 && support.Landlock < isolation.Ports {
		return nil, fault.New("server.isolate", fault.Unavailable, "this kernel cannot restrict the network").
			Hint("set isolation.network to all")
	}
	if o.Isolation == "require" && len(missing) > 0 {
		return nil, fault.New("server.isolate", fault.Unavailable,
			"isolation.mode is require, and not everything can be separated: "+strings.Join(missing, "; ")).
			Hint("docs/isolation.md says what each part needs; isolation.mode = on goes without what is missing")
	}
	s.separation = separated
	if len(missing) > 0 {
		s.separation = "in part: " + strings.Join(missing, "; ")
		s.log.Warn("compiles and handlers are confined in part", "missing", strings.Join(missing, "; "))
	}
	if support.None() {
		return nil, nil
	}
	s.log.Info("compiles and handlers are confined", "landlock", support.Landlock, "namespaces", support.Namespaces,
		"users", c.FirstUser != 0)
	return c, nil
}

// installers returns how commands are confined that install packages from source. They run as the
// server's user, without its privileges, so that what they make belongs to the server: the environment's
// code must not change it. They need the network, to which isolation.network does not apply.
func (s *Server) installers(c *isolation.Config) func(*exec.Cmd, venv.Sandbox) (func() (func(), error), error) {
	if c == nil {
		return nil
	}
	own := isolation.Config{Support: c.Support, Read: c.Read}
	cell := own.Cell(0)
	return func(cmd *exec.Cmd, box venv.Sandbox) (func() (func(), error), error) {
		env, err := uuid.Parse(box.Owner)
		if err != nil {
			return nil, fault.Wrap("server.install", fault.Internal, err).Say("nobody owns this installation")
		}
		runs := s.layout.Environment(env).Runs()
		private, err := cell.Open(runs, "install")
		if err != nil {
			return nil, fault.Disk("server.install", runs, err)
		}
		access := isolation.Access{
			Read: append(isolation.Interpreter(box.Python), box.Read...), Write: box.Write,
		}
		begun, err := private.Confine(cmd, access)
		if err != nil {
			private.Close()
			return nil, err
		}
		return func() (func(), error) {
			space, err := begun()
			return func() {
				space.End()
				space.Close()
				private.Close()
			}, err
		}, nil
	}
}
