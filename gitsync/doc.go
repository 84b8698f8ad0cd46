// Package gitsync brings committed intent from Git repositories to the disk.
//
//	repository ──Fetch──▶ mirror, bare, one per URL ──Checkout──▶ <env>/compiler, exactly one commit
//	     ▲                    ▲          ▲                             │ .git: index, origin,
//	  Watcher: polls,      shared by the environments;                 │ objects borrowed from
//	  fsnotify, pokes      faults and crashes never leave it half      ▼ the mirror
//
// A Syncer fetches and checks out; a Watcher notices that a repository moved.
// Neither runs the git program. Local repositories are read directly, others
// over HTTP and SSH. What goes wrong is a fault that names the repository and what to
// do, and never holds a credential. Whatever goes wrong, a checkout is left as
// it was: all of a commit is read, judged and staged before the first file of
// the checkout is touched.
package gitsync
