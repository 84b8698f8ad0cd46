package webhooks

import (
	"errors"
	"net/http"
)

// Gitea, Forgejo and Gogs send nearly what GitHub sends, in headers of their own.
// The newer of them also send the headers of the older, and of GitHub.
var (
	gitea   = hubLike("gitea", "Gitea", "Gogs")
	forgejo = hubLike("forgejo", "Forgejo", "Gitea", "Gogs")
	gogs    = hubLike("gogs", "Gogs")
)

// hubLike returns the dialect of a forge whose headers begin with X- and one of these words.
func hubLike(name string, words ...string) dialect {
	var signatures []string
	for _, word := range words {
		signatures = append(signatures, "X-"+word+"-Signature")
	}
	return dialect{
		name: name,
		proof: func(h http.Header) (proof, error) {
			for _, header := range signatures {
				if h.Get(header) != "" {
					return signedBody(h, "", header)
				}
			}
			if h.Get(HeaderSignature) != "" {
				return signedBody(h, signaturePrefix, HeaderSignature)
			}
			return nil, errors.New(
				"the request is not signed: set the environment's webhook secret as the secret of the webhook",
			)
		},
		parse: func(h http.Header, body []byte) (Event, string, error) {
			var event, key string
			for _, word := range words {
				event, key = firstOf(event, h.Get("X-"+word+"-Event")), firstOf(key, h.Get("X-"+word+"-Delivery"))
			}
			if event = firstOf(event, h.Get(HeaderGitHubEvent)); event == "" {
				return Event{}, "", errors.New("the header X-" + words[0] + "-Event is missing")
			}
			body, err := unwrapForm(h, body)
			if err != nil {
				return Event{}, "", err
			}
			e, err := parseHub(event, body)
			return e, firstOf(key, h.Get(headerGitHubDelivery)), err
		},
	}
}
