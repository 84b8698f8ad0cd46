// Package solve finds the layout of a cluster: which node has which services, on
// which hardware and image.
//
//	Request: template, services, size, what exists ── Layout ──▶ nodes
//	                                                      └────▶ *Contradiction: the reasons that cannot hold together
//
// It is deterministic, keeps what exists, and reads and writes nothing.
package solve
