// Package deploys tells what a push brings about on a whole server: what is compiled
// and deployed, by the server or by a remote agent, the states on the way, drift,
// pruning, dry runs, facts, secrets, clean-up, and the command line. Package lab has the world
// in which it happens.
package deploys
