package isolation

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Config says how the processes of all environments of a server are confined.
type Config struct {
	Support Support // from Detect
	// FirstUser begins the range of user ids that a server of root gives to its environments; the
	// environment with number n has the id FirstUser+n. 0: they run as the server's user.
	FirstUser   uint32
	Read, Write []string // folders that the operator allows to all environments
	Network     Network
}

// Cell is what confines the processes of one environment. A nil Cell confines nothing.
type Cell struct {
	config Config
	user   uint32
}

// Cell returns the cell of the environment with this number, which is never used for another one.
func (c Config) Cell(number int) *Cell {
	cell := &Cell{config: c}
	if c.FirstUser != 0 && c.Support.Users {
		cell.user = c.FirstUser + uint32(number)
	}
	return cell
}

// Access is what a process of a cell may reach beside the system's programs and what the operator allows.
type Access struct {
	Read   []string
	Write  []string
	Limits Limits
}

// Private is a folder of one process, or of one that others belong to. Nobody else can read it.
type Private struct {
	cell *Cell
	Dir  string // belongs to the server, so the process cannot replace what lies in it
	// Environ has the variables HOME and TMPDIR, as the process sees its folders.
	Environ []string
}

// Open makes a private folder with the given subfolders in a folder of the server.
func (c *Cell) Open(parent, kind string, extra ...string) (_ *Private, err error) {
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, kind+"-")
	if err != nil {
		return nil, err
	}
	p := &Private{cell: c, Dir: dir}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(privateFolders, extra) {
		if err := c.Own(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	home, tmp := c.config.Support.Folders(c.policy(Access{}, dir))
	p.Environ = []string{"HOME=" + home, "TMPDIR=" + tmp}
	return p, nil
}

// Close removes the folder. The processes that use it have ended.
func (p *Private) Close() {
	if p != nil {
		_ = os.RemoveAll(p.Dir)
	}
}

// Exact reports whether the kernel's limit of processes counts those of one start alone.
func (c *Cell) Exact() bool {
	return c != nil && c.config.Support.Namespaces && (c.user != 0 || os.Geteuid() != 0)
}

// Own makes a folder that belongs to the processes of the cell. One that belongs to another user, because
// the range of users was changed, is made again.
func (c *Cell) Own(dir string) error {
	user := os.Geteuid()
	if c.user != 0 {
		user = int(c.user)
	}
	if info, err := os.Lstat(dir); err == nil {
		stat, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.IsDir() && int(stat.Uid) == user {
			return nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if c.user == 0 {
		return nil
	}
	return os.Lchown(dir, user, user)
}

// Give makes files that the server has put into a folder of Own files of the cell's processes. No process of the cell
// may change the folder meanwhile.
func (c *Cell) Give(dir string) error {
	if c.user == 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(c.user), int(c.user))
	})
}

// Share lets the processes of the cell read folders of the server's that lie below top, the folder of
// the environment. top itself is closed to all other users.
func (c *Cell) Share(top string, dirs ...string) error {
	if c.user == 0 {
		return nil
	}
	if err := os.Lchown(top, -1, int(c.user)); err != nil {
		return err
	}
	if err := os.Chmod(top, 0o750); err != nil {
		return err
	}
	if err := open(filepath.Dir(top), 0o001); err != nil {
		return err
	}
	for _, dir := range dirs {
		bits := os.FileMode(0o055)
		for each := dir; each != top && strings.HasPrefix(each, top+"/"); each = filepath.Dir(each) {
			if err := open(each, bits); err != nil {
				return err
			}
			bits = 0o011
		}
	}
	return nil
}

// open adds bits to the mode of a folder of the server's, if it is there.
func open(dir string, bits os.FileMode) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() || info.Mode().Perm()&bits == bits {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()|bits)
}

func (c *Cell) policy(a Access, private string) Policy {
	p := Policy{
		Read:    slices.Concat(a.Read, c.config.Read),
		Write:   slices.Concat(a.Write, c.config.Write),
		Private: private,
		UID:     c.user,
		Network: c.config.Network,
		Limits:  a.Limits,
	}
	if !c.config.Support.ownRoot(p) {
		// A copy of a template runs with the rules of the template, and with the folders of its compile.
		p.Write = append(p.Write, filepath.Dir(private))
	}
	return p
}

// Confine makes cmd start confined; see Support.Command.
func (p *Private) Confine(cmd *exec.Cmd, a Access) (started func() (*Space, error), err error) {
	return p.cell.config.Support.Command(cmd, p.cell.policy(a, p.Dir))
}

// Interpreter returns the folders that a Python interpreter needs: those of the installations that
// the path, which may be a link in a virtual environment, leads to.
func Interpreter(path string) []string {
	var out []string
	for range linksMax {
		prefix := filepath.Dir(filepath.Dir(path))
		if strings.Count(prefix, "/") > 1 || prefix == "/usr" { // never the whole of / or /home
			out = append(out, prefix)
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		out = append(out, Interpreter(real)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
