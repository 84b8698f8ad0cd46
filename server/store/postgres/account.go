package postgres

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"ordain.dev/ordain/internal/fault"
)

// account is the account that the database runs as.
type account struct {
	uid, gid int
	name     string // as the system knows it
	switched bool   // it is not the account of this program
}

// chooseAccount returns this program's own account or, for root, that of the existing data directory, else postgres,
// else nobody.
func chooseAccount(dataDir string) (account, error) {
	const op = "postgres.chooseAccount"
	uid := os.Geteuid()
	owner := -1
	if info, err := os.Stat(dataDir); err == nil {
		owner = ownerOf(info)
	}
	if uid != 0 {
		if owner >= 0 && owner != uid {
			return account{}, fault.New(op, fault.Forbidden,
				fmt.Sprintf("the data directory %s belongs to user id %d, this program runs as %d", dataDir, owner,
					uid)).
				Hint("run as the same user as before, or choose another state directory")
		}
		u, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			return account{}, fault.Wrap(op, fault.Invalid, err).Say("PostgreSQL needs an account with a name").
				Hint("add a line for user id " + strconv.Itoa(uid) +
					" to /etc/passwd, or use your own database with --database URL")
		}
		return account{uid: uid, gid: os.Getegid(), name: u.Username}, nil
	}
	var u *user.User
	var err error
	if owner > 0 {
		u, err = user.LookupId(strconv.Itoa(owner))
	} else if u, err = user.Lookup("postgres"); err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return account{}, fault.Wrap(op, fault.Invalid, err).
			Say("PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody").
			Hint("add a user postgres (useradd --system postgres), run Ordain as an ordinary user, or use your own " +
				"database with --database URL")
	}
	a := account{name: u.Username, switched: true}
	if a.uid, err = strconv.Atoi(u.Uid); err == nil {
		a.gid, err = strconv.Atoi(u.Gid)
	}
	if err != nil || a.uid == 0 {
		return a, fault.New(op, fault.Invalid, "the user "+u.Username+" cannot run PostgreSQL: user id "+u.Uid)
	}
	return a, nil
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// mayEnter reports whether the account can pass through a directory.
func (a account) mayEnter(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || a.uid == 0:
		return true
	case int(st.Uid) == a.uid:
		return info.Mode()&0o100 != 0
	case int(st.Gid) == a.gid:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}

// checkWay makes sure that the account can reach a path through all directories above it.
func (a account) checkWay(path string) error {
	if !a.switched {
		return nil
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return inWords("postgres.checkWay", err)
		}
		if !a.mayEnter(info) {
			return fault.New(
				"postgres.checkWay",
				fault.Forbidden,
				fmt.Sprintf(
					"PostgreSQL runs as the user %s, who may not pass through the directory %s on the way to %s",
					a.name,
					dir,
					path,
				),
			).
				Hint("chmod o+x " + dir + " (it lets others pass, not list), or choose another state directory")
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// privateDir makes a directory that only the account may enter.
func (a account) privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return inWords("postgres.privateDir", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return inWords("postgres.privateDir", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return inWords("postgres.privateDir", err)
	}
	if owner := ownerOf(info); !info.IsDir() || owner != a.uid && owner != os.Geteuid() {
		return fault.New("postgres.privateDir", fault.Forbidden, dir+" is not a directory of the user "+a.name).
			Hint("remove it if you know that it is not needed")
	}
	if a.switched {
		if err := os.Lchown(dir, a.uid, a.gid); err != nil {
			return inWords("postgres.privateDir", err)
		}
	}
	return inWordsOrNil("postgres.privateDir", os.Chmod(dir, 0o700))
}
