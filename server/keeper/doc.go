// Package keeper looks after environments: it follows their repositories, compiles
// new commits, releases the versions and runs the deployer.
//
// The Registry has one keeper for each environment that this process owns; owners.go
// says how processes share the environments. A keeper has these loops, which end together:
//
//	requests    what people and programs asked for, wherever they did ▸ the deployer, the loops below  requests.go
//	webhooks    deliveries that wait ▸ one look at the repository ▸ a compile is asked for    hooks.go
//	compiles    the queue ▸ fetch, admit, checkout, compile, export ▸ release                 compilation.go
//	previews    a dry run of a commit ▸ a compilation beside the queue ▸ its dry run          previews.go
//	promotions  what the followed environment deployed ▸ gates ▸ a compile is asked for       promotions.go
//	deployer    a version that was released ▸ its resources are deployed                      package deployer
//
// A process without the role process has a Registry that is not started: it records what
// the owners are asked for, and owns nothing.
//
// The watcher (package gitsync), the inbox of webhooks and the clean-up are
// shared by all environments of the process. Loops wake each other through channels
// that hold one wake. The work itself is in the database, so a killed process loses
// wakes but no work.
package keeper
