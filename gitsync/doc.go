// Package gitsync brings committed intent from Git repositories to the disk.
//
//	repository ──Fetch──▶ mirror, bare, one per URL ──Checkout──▶ <env>/compiler, exactly one commit
//	     ▲                    ▲          ▲                             │ .git: index, origin,
//	  Watcher: polls,      shared by environments;                     │ objects borrowed from
//	  fsnotify, pokes      faults and crashes never leave it half      ▼ the mirror
//
// A Syncer fetches and checks out; a Watcher notices that a repository moved.
// Neither of them runs the git program. Local repositories are read directly,
// others over HTTP and SSH.
//
// A Syncer also commits what people change in Ordain, and pushes it:
//
//	Write: fetch ──▶ draft on the tip, in memory ──push──▶ repository ──accepted──▶ mirror
//	         ▲                                      │
//	         └──── somebody pushed meanwhile ◀──────┘ refused: ErrProtected, or another fault
//
// Only a push to a repository on this machine runs the git program, because a
// push has to run the repository's hooks.
//
// Every error is a fault that names the repository and
// says what to do; it never holds a credential. When a checkout fails, its folder
// stays as it was: the whole commit is read, checked and staged before the first
// file in the folder is touched.
package gitsync
