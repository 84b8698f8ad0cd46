// Package webhooks understands what forges send when somebody pushes, and
// turns it into "this repository moved".
//
//	POST /hooks/github   X-Hub-Signature-256: HMAC over the body (Gitea and Forgejo speak it, too)
//	POST /hooks/gitlab   X-Gitlab-Token: the secret itself
//
//	request ─▶ size, header ─▶ payload ─▶ environments on this repository ─▶ whose secret verifies?
//	                                                                          └─▶ branch matches? ─▶ Notify
//
// A payload is never believed: it only makes the server fetch from the source
// that an environment has. Every environment is guarded by its own secret;
// one without a secret cannot be notified. Answers say what was started, for
// forges show them to the people who set the webhook up.
package webhooks
