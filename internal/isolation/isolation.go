// Package isolation starts processes that can reach only what they are meant to reach. The server
// starts everything that runs the code of an environment through it: compiles, the templates of
// compile workers, and executors.
//
//	server ──Command──▶ this program again, as the trampoline ──exec──▶ compiler, Python, …
//	                    │  reads the policy from an inherited pipe
//	                    │  builds a file system of the allowed folders     (user and mount namespace)
//	                    │  lowers its limits, sets no_new_privs
//	                    │  becomes the environment's user                  (if the server is root)
//	                    ▼  gives up all other files, signals and sockets   (Landlock)
//
// Every layer is used where the kernel offers it; Detect tells which ones work here. The trampoline
// runs in an init function of this package, so every program that imports the package can be its own
// trampoline, test binaries included. It starts with an empty environment: LD_PRELOAD and the like
// come from the policy and take effect only in the confined program.
package isolation

import "slices"

// Policy says what a process may reach. All paths are absolute.
type Policy struct {
	Read  []string // files and folders that it may read and run
	Write []string // files and folders that it may change, too
	// Private is a folder with the subfolders tmp, shm and home, for this process alone. With a file
	// system of its own, the process finds them at /tmp, /dev/shm and Home.
	Private string
	UID     uint32 // user and group of the process; 0 keeps those of the server
	Network Network
	Limits  Limits
}

// Network says where a process may connect to. The zero value allows everything.
type Network struct {
	None  bool     // no network but a loopback of its own
	Ports []uint16 // the only TCP ports to connect to; empty allows all
}

// Limits are limits of the kernel. 0 means that the limit stays as it is.
type Limits struct {
	Processes uint64 // processes and threads of everything that is confined together
	FileSize  uint64 // bytes of the largest file
	OpenFiles uint64
}

// Home is the home folder of a process with a file system of its own.
const Home = "/ordain"

// Support says which layers the kernel offers to this process.
type Support struct {
	Landlock   int    // version of its interface; 0: there is none
	Namespaces bool   // user and mount namespaces
	Users      bool   // processes can run as other users
	Why        string // why Namespaces is false
}

// Full reports whether every layer that this server can use is there.
func (s Support) Full() bool { return s.Landlock >= landlockScoped && s.Namespaces }

// None reports whether nothing can be confined.
func (s Support) None() bool { return s.Landlock == 0 && !s.Namespaces && !s.Users }

// Missing returns what is not separated because the kernel does not offer it, for people.
func (s Support) Missing() []string {
	var out []string
	if !s.Namespaces {
		out = append(out, "there are no user and mount namespaces ("+s.Why+"), so the processes of an environment see "+
			"the names of all files, and limits of processes count a whole user")
	}
	switch {
	case s.Landlock == 0:
		out = append(out, "there is no Landlock, so signals, abstract sockets and single TCP ports are not restricted")
	case s.Landlock < landlockScoped:
		out = append(out, "Landlock is older than that of Linux 6.12, so signals and abstract sockets are restricted "+
			"by users only")
	}
	return out
}

// Versions of Landlock: landlockScoped restricts signals and abstract sockets, and landlockRefer allows
// renames between folders.
const (
	landlockRefer  = 2
	Ports          = 4 // the version of Landlock that restricts TCP ports
	landlockScoped = 6
)

// ownRoot reports whether the process gets a file system of its own.
func (s Support) ownRoot(p Policy) bool {
	return s.Namespaces && !slices.Contains(p.Read, "/") && !slices.Contains(p.Write, "/")
}

// Folders returns the HOME and the TMPDIR of a process under this policy.
func (s Support) Folders(p Policy) (home, tmp string) {
	if s.ownRoot(p) {
		return Home, "/tmp"
	}
	return p.Private + "/home", p.Private + "/tmp"
}

// linksMax is how many symbolic links there may be on the way to a path.
const linksMax = 40

// privateFolders are the subfolders of Policy.Private.
var privateFolders = []string{"tmp", "shm", "home"}
