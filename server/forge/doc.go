// Package forge tells the forge of an environment's repository what happens to
// its commits and pull requests, and asks it about pull requests.
//
// Whatever a forge is told goes through the record, so that nobody waits for a
// forge and nothing is lost:
//
//	event ──same transaction──▶ forge_outbox ──▶ process forge.send ──▶ client ──▶ the forge
//	                                 ▲    │ fails: growing pauses, then dead
//	                                 └────┘
//
// A status carries its text. A comment, and the look-up of a pull request, carry
// only its number: what is to be said is read when it is said.
//
// A pull request is looked up whenever a webhook, the clock or a person says
// that it moved; what they say about it is not believed.
//
//	LookUp ─▶ outbox ─▶ lookAtPull ─▶ may its code run? ─yes─▶ preview of the merge result ─▶ comment
//	                                        └─no──▶ comment: needs approval ─▶ control.ApprovePull
package forge
