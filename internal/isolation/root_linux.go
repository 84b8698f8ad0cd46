package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What every program needs to run. What is not there is left out.
var (
	systemFolders = []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/sys",
		"/proc",
	}
	// systemFiles are those of /etc that say how to resolve names, which certificates to trust, and
	// the like. The rest of /etc may have passwords, such as those of Ordain's own configuration or of the
	// machine's gitconfig, and private keys (ssl/private, pki/tls/private).
	systemFiles = []string{
		"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies",
		"debian_version", "default/locale", "fonts", "gai.conf", "host.conf", "hostname", "hosts", "inputrc",
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "magic",
		"magic.mime", "mime.types", "networks", "nsswitch.conf", "openssl", "os-release", "pki/ca-trust",
		"pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "profile", "protocols", "python3",
		"redhat-release", "resolv.conf", "rpc", "services", "shells", "ssh/ssh_config", "ssh/ssh_config.d",
		"ssh/ssh_known_hosts", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "system-release", "terminfo",
		"timezone",
	}
	devices = []string{"null", "zero", "full", "random", "urandom", "tty"}
)

// reachable returns the paths for Landlock, as they are inside.
func (o *order) reachable() (read, write []string) {
	read = append(slices.Clone(systemFolders), o.Read...)
	for _, name := range append(slices.Clone(systemFiles), "passwd", "group") {
		read = append(read, "/etc/"+name)
	}
	write = slices.Clone(o.Write)
	if !o.OwnRoot {
		for _, name := range privateFolders {
			write = append(write, o.Private+"/"+name)
		}
		for _, name := range devices {
			write = append(write, "/dev/"+name)
		}
		return read, write
	}
	return []string{"/"}, append(write, "/dev", "/tmp", "/var/tmp", Home) // its root has nothing else
}

const (
	oldRoot = "/old"
	newRoot = "/new"
)

// buildRoot replaces the root folder by one that has only what the policy names, at the same paths:
//
//	/      a small file system in memory, read-only
//	/usr   and the like, and every path of the policy: mounted from the server's file system
//	/tmp   and the like: the private folders
//
// Symbolic links on the way to a path are made again.
func (o *order) buildRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	base := o.Private
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,mode=755"); err != nil {
		return fmt.Errorf("mount an empty root: %w", err)
	}
	for _, dir := range []string{oldRoot, newRoot} {
		if err := os.Mkdir(base+dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(base, base+oldRoot); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Mount(newRoot, newRoot, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the new root: %w", err)
	}
	if err := o.fill(); err != nil {
		return err
	}
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	// The old root is the empty one now, on which the server's root is mounted: both go.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the server's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return protect("/", 0)
}

// place is a path of the new root.
type place struct {
	from  string // in the server's root
	at    string // in the new one
	write bool
}

// fill mounts everything into the new root. Folders come before what lies in them.
func (o *order) fill() error {
	var places []place
	for _, path := range append(slices.Clone(systemFolders), o.Read...) {
		places = append(places, place{path, path, false})
	}
	for _, name := range systemFiles {
		places = append(places, place{"/etc/" + name, "/etc/" + name, false})
	}
	for _, name := range devices {
		places = append(places, place{"/dev/" + name, "/dev/" + name, true})
	}
	places = append(places,
		place{o.Private + "/tmp", "/tmp", true}, place{o.Private + "/tmp", "/var/tmp", true},
		place{o.Private + "/shm", "/dev/shm", true}, place{o.Private + "/home", Home, true})
	for _, path := range o.Write {
		places = append(places, place{path, path, true})
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(depth(a.at), depth(b.at)) })
	for _, each := range places {
		if err := each.mount(); err != nil {
			return err
		}
	}
	if err := o.name(); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, newRoot+"/dev/"+name); err != nil {
			return err
		}
	}
	// Pseudo-terminals of its own, for handlers that drive interactive programs. They are not vital.
	pts := newRoot + "/dev/pts"
	if os.Mkdir(pts, 0o755) == nil &&
		unix.Mount(
			"devpts",
			pts,
			"devpts",
			unix.MS_NOSUID|unix.MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=620",
		) == nil {
		_ = os.Symlink("pts/ptmx", newRoot+"/dev/ptmx")
	}
	return nil
}

// name copies the list of users, and adds the user of the environment, for which some programs look.
func (o *order) name() error {
	for file, line := range map[string]string{
		"/etc/passwd": fmt.Sprintf("ordain-%d:x:%d:%d:Ordain:%s:/bin/sh\n", o.UID, o.UID, o.UID, Home),
		"/etc/group":  fmt.Sprintf("ordain-%d:x:%d:\n", o.UID, o.UID),
	} {
		if _, err := os.Lstat(newRoot + file); err == nil {
			continue // the operator allows /etc: this is the server's own file
		}
		text, err := os.ReadFile(oldRoot + file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		if o.UID != 0 {
			text = append(text, line...)
		}
		if err := os.WriteFile(newRoot+file, text, 0o644); err != nil {
			return fmt.Errorf("name the user of the environment: %w", err)
		}
	}
	return nil
}

func depth(path string) int { return strings.Count(filepath.Clean(path), "/") }

// mount makes a path available, if it exists.
func (p place) mount() error {
	from := p.from
	if p.from == p.at {
		real, err := copyLinks(p.at)
		if real == "" || err != nil {
			return err
		}
		from, p.at = real, real
	} else if err := os.MkdirAll(newRoot+p.at, 0o755); err != nil {
		return err
	}
	info, err := os.Stat(oldRoot + from)
	if err != nil {
		return nil //nolint:nilerr // such as a folder that this user cannot see
	}
	at := newRoot + p.at
	if _, err := os.Lstat(at); err != nil {
		if info.IsDir() {
			err = os.Mkdir(at, 0o755)
		} else {
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			return fmt.Errorf("make room for %s: %w", p.at, err)
		}
	}
	if err := unix.Mount(oldRoot+from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", p.at, err)
	}
	if p.write {
		return nil
	}
	return protect(at, unix.AT_RECURSIVE)
}

// protect makes a mount read-only.
func protect(path string, flags uint) error {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, attr); err != nil {
		return fmt.Errorf("make %s read-only: %w", strings.TrimPrefix(path, newRoot), err)
	}
	return nil
}

// copyLinks makes the folders and symbolic links on the way to a path in the new root. It returns the
// path without links, or an empty string if it does not exist.
func copyLinks(path string) (string, error) {
	at, left := "/", strings.Split(strings.Trim(path, "/"), "/")
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(oldRoot + next)
		if err != nil {
			return "", nil //nolint:nilerr // it is not there, or this user cannot see it
		}
		_, missing := os.Lstat(newRoot + next)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(oldRoot + next)
			if err != nil {
				return "", err
			}
			if links++; links > linksMax {
				return "", errors.New(path + " has too many symbolic links")
			}
			if missing != nil {
				if err := os.Symlink(target, newRoot+next); err != nil {
					return "", err
				}
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			left = append(strings.Split(target, "/"), left...)
			continue
		case missing != nil && info.IsDir():
			if err := os.Mkdir(newRoot+next, 0o755); err != nil {
				return "", err
			}
		}
		at = next
	}
	return at, nil
}
