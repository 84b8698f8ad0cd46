package webhooks

import (
	"errors"
	"net/http"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Headers of webhooks that people write themselves. The signature may also be in X-Hub-Signature-256 or
// X-Signature-256.
const (
	HeaderGenericSignature = "X-Ordain-Signature-256"
	HeaderGenericDelivery  = "X-Ordain-Delivery"
)

// generic is for any program that can send a small document and sign it:
//
//	{"repository": "https://…", "ref": "refs/heads/main", "before": "…", "after": "…",
//	 "deleted": false, "sender": "…", "message": "…", "paths": ["…"]}
//
// ref may also be the name of a branch. Everything but repository and ref may be missing.
var generic = dialect{
	name: "generic",
	proof: func(h http.Header) (proof, error) {
		return signedBody(h, signaturePrefix, HeaderGenericSignature, HeaderSignature, "X-Signature-256")
	},
	parse: func(h http.Header, body []byte) (Event, string, error) {
		e, err := parseGeneric(body)
		return e, h.Get(HeaderGenericDelivery), err
	},
}

func parseGeneric(body []byte) (Event, error) {
	var p struct {
		Event      string
		Repository string
		Ref        string
		Before     string
		After      string
		Deleted    bool
		Sender     string
		Message    string
		Paths      []string
	}
	if err := decode(body, &p); err != nil {
		return Event{}, err
	}
	if p.Repository == "" {
		return Event{}, missing("repository", "repository")
	}
	e := Event{
		Kind: intent.HookPush, Name: firstOf(p.Event, "push"), Repository: p.Repository, URLs: []string{p.Repository},
		Ref: p.Ref, Before: p.Before, Commit: p.After, Deleted: p.Deleted || zeros(p.After),
		Sender: p.Sender, Subject: p.Message,
	}
	switch {
	case p.Event == "ping":
		e.Kind = intent.HookPing
	case p.Event != "" && p.Event != "push":
		e.Kind = intent.HookOther
	case p.Ref == "":
		return e, errors.New("it names no branch: ref is missing")
	case !strings.HasPrefix(p.Ref, "refs/"):
		e.Ref = branches + p.Ref
	}
	if e.Kind == intent.HookPush {
		e.Kind = kindOf(e.Ref)
	}
	// Paths mean something only together with the two commits that they differ between.
	if len(p.Paths) > 0 && commitOf(p.Before) != "" && commitOf(p.After) != "" && !e.Deleted {
		e.Paths = p.Paths
	}
	return finish(e, "repository")
}
