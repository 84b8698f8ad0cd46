// Package control holds the server's verbs: make a project, bind an environment,
// compile, release, confirm, roll back, deploy, dry-run, promote, halt, clear. The
// API, the console, webhooks and the command line all use it, so that a verb does
// the same thing wherever it comes from.
//
//	api, console, webhooks, cli ──▶ Control ──▶ store     (the record)
//	             │                     ├──▶ keeper    (what runs for each environment)
//	             │                     ├──▶ forge     (pull requests)
//	             └──reads──▶ store     └──▶ bus       (what moved, for live pages)
//
// A verb checks its input and the state that it finds, records its effect and the
// person who asked for it, and notifies the keepers and live pages. There are no
// verbs that only read the record: the doors read the store themselves.
package control
