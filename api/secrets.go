package api

import (
	"context"
	"net/http"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// secretCalls are about the secrets of an environment and of its project: what repositories and webhooks ask for, and
// the variables of handlers (variable:NAME). A secret is written and never read back. Inmanta has no such calls.
func (s *server) secretCalls(c *calls) {
	const environment, project = "/api/v2/environment/{id}/secret", "/api/v2/project/{id}/secret"
	v2(c, http.MethodGet, environment, "List the secrets of an environment by name.",
		access.SeeEnvironment, s.listSecrets)
	done[nullData](c, http.MethodPut, environment+"/{name}",
		"Set a secret of an environment; an empty value deletes it.", access.SetSecret, s.setSecret)
	v2(c, http.MethodGet, project, "List the secrets of a project by name.",
		access.SeeProjectSecrets, s.listProjectSecrets)
	done[nullData](c, http.MethodPut, project+"/{name}",
		"Set a secret that all environments of a project share; an empty value deletes it.",
		access.SetProjectSecret, s.setProjectSecret)
	const hosts = "/api/v2/project/{id}/known_hosts"
	v2(c, http.MethodGet, hosts, "Show the keys of the SSH servers that a project knows.",
		access.SeeProjectSecrets, s.getKnownHosts)
	done[nullData](c, http.MethodPut, hosts, "Replace the keys of the SSH servers that a project knows.",
		access.SetKnownHosts, s.setKnownHosts)
}

// secretName is a secret in a list: its value is always masked.
type secretName struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type environmentSecret struct {
	oneEnvironment
	Name  string `arg:"name,required"`
	Value string `arg:"value" max:"65536"`
}

type projectSecret struct {
	oneProject
	Name  string `arg:"name,required"`
	Value string `arg:"value" max:"65536"`
}

type knownHosts struct {
	oneProject
	Lines string `arg:"lines" max:"1048576"`
}

func (s *server) listSecrets(ctx context.Context, a oneEnvironment) ([]secretName, error) {
	names, err := s.control.SecretNames(ctx, a.ID)
	return listed(names, masked), err
}

func (s *server) setSecret(ctx context.Context, a environmentSecret) error {
	return s.control.SetSecret(ctx, a.ID, a.Name, a.Value)
}

func (s *server) listProjectSecrets(ctx context.Context, a oneProject) ([]secretName, error) {
	names, err := s.control.ProjectSecretNames(ctx, a.ID)
	return listed(names, masked), err
}

func (s *server) setProjectSecret(ctx context.Context, a projectSecret) error {
	return s.control.SetProjectSecret(ctx, a.ID, a.Name, a.Value)
}

func (s *server) getKnownHosts(ctx context.Context, a oneProject) (string, error) {
	return s.store.KnownHosts(ctx, a.ID)
}

func (s *server) setKnownHosts(ctx context.Context, a knownHosts) error {
	return s.control.SetKnownHosts(ctx, a.ID, a.Lines)
}

func masked(name string) secretName { return secretName{Name: name, Value: intent.Secret} }
