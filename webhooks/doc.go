// Package webhooks receives what forges send when somebody pushes or opens a
// pull request, and records it as a delivery.
//
//	POST /hooks/<forge>
//
//	request ─▶ rate limit ─▶ raw body ─▶ whose secret signed it? ─▶ payload
//	                                                                   │
//	          answer ◀─ Record ◀─ which of these use the repository? ◀─┘
//
// The signature is checked on the raw bytes, before anything in them is read. A
// payload is never believed: it only makes the server look at the repository of
// an environment. Every environment is guarded by its own secrets; an environment
// without one cannot be notified. The answer is sent once the delivery is durable,
// and before anything else is done; the server decides from the record what the
// delivery does to each environment.
//
// Each forge has a file with its dialect: how it proves who sends, what its
// payloads look like, and how it numbers its deliveries.
package webhooks
