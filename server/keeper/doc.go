// Package keeper looks after environments: it follows their repositories, compiles
// new commits, releases the versions and runs the deployer.
//
// The Registry has one keeper for each environment. Where several processes
// share a database, one of them owns an environment at a time. While a keeper
// owns its environment it has these loops, which end together:
//
//	webhooks    deliveries that wait ▸ one look at the repository ▸ a compile is asked for    hooks.go
//	compiles    the queue ▸ fetch, admit, checkout, compile, export ▸ release                 compilation.go
//	previews    a dry run of a commit ▸ a compilation beside the queue ▸ its dry run          previews.go
//	promotions  what the followed environment deployed ▸ gates ▸ a compile is asked for       promotions.go
//	deployer    a version that was released ▸ its resources are deployed                      package deployer
//
// The watcher (package gitsync), the inbox of webhooks and the clean-up are
// shared by all environments of the process. Loops wake each other through channels
// that hold one wake. The work itself is in the database, so a killed process loses
// wakes but no work.
package keeper
