// Package solve finds the layout of a cluster: which node has which services, on
// which hardware and image.
//
//	Request: template, services, size, what exists ── Layout ──▶ nodes
//	                                                      └────▶ *Contradiction: the reasons that cannot hold together
//	Request and nodes, perhaps edited by hand ── Check ──▶ what is wrong with them
//
// It is deterministic, keeps what exists, and reads and writes nothing.
//
// Inside, nodes that are alike are counted, not listed:
//
//	Request ── scope ──▶ names looked up ── problem ──▶ blocks of services that are always together, classes of nodes
//	problem ── pack, relax ──▶ is there a layout? ── layout ──▶ the preferred one, asking again for each choice
//	no layout ── explain ──▶ rules are left out by halves, until the others could hold without any one
package solve
