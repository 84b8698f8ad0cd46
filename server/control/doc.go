// Package control holds the server's verbs: make a project, bind an
// environment, sync, compile, release, deploy, dry-run, halt, clear. The API,
// the console, webhooks and the command line all go through it, so that one
// verb means the same thing wherever it is said.
//
//	api, console, webhooks, cli ──▶ Control ──▶ Store      (the record)
//	                                   │   └──▶ bus        (what moved, for live pages)
//	                                   ▼
//	                    one keeper per environment: poll ▸ sync ▸ compile ▸ release ▸ deploy
//
// Control meets the rest through small interfaces declared in ports.go.
package control
