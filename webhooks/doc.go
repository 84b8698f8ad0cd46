// Package webhooks understands what forges send when somebody pushes or opens a
// pull request, and turns it into a delivery on record.
//
//	POST /hooks/<forge>
//
//	request ─▶ rate ─▶ signature's form ─▶ size ─▶ payload ─▶ environments on this repository ─▶ whose secret verifies? ─▶ Record ─▶ answer
//
// A payload is never believed: it only makes the server look at the source
// that an environment has. Every environment is guarded by its own secrets;
// one without a secret cannot be notified. The answer is sent when the delivery
// is durable and before anything else is done; what it does to each environment
// is decided from the record (server/control), and can be read there.
//
// Each forge has a file with its dialect: how it proves who sends, what its
// payloads look like, and how it numbers its deliveries.
package webhooks
