// Package control holds the server's verbs: make a project, bind an environment,
// compile, release, confirm, roll back, deploy, dry-run, promote, halt, clear. The
// API, the console, webhooks and the command line go through it, so that one verb
// means the same thing wherever it is said.
//
//	api, console, webhooks, cli ──▶ Control ──▶ store     (the record)
//	             │                     ├──▶ keeper    (what runs for each environment)
//	             │                     ├──▶ forge     (pull requests)
//	             └──reads──▶ store     └──▶ bus       (what moved, for live pages)
//
// A verb checks its input and the state that it finds, records its effect and who
// wanted it, and tells the keepers and live pages. What only reads the record is
// not here: doors read the store themselves.
package control
