package control_test

import (
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// An administrator of the project set the password of its Git server. A maintainer, who cannot read it, points an
// environment at a server of their own, which would be sent the password.
func TestCredentialsDoNotFollowAnAddress(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	e, err := s.store.Environment(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	scope := access.Scope{Project: e.ProjectID}
	as := func(role access.Role) access.Principal {
		return access.Principal{Kind: access.Person, Name: "mallory",
			Bindings: []access.Binding{{Role: role, Scope: scope}}}
	}
	admin := access.With(t.Context(), as(access.Administrator))
	mallory := access.With(t.Context(), as(access.Maintainer))
	e.Source = intent.Source{URL: "https://git.example.com/shop.git", Branch: "main"}
	if e, err = s.UpdateEnvironment(admin, e); err != nil {
		t.Fatal(err)
	}
	if err := s.SetProjectSecret(admin, e.ProjectID, source.SecretGitPassword, "hush-hush"); err != nil {
		t.Fatal(err)
	}
	create := func(name, url string, secrets map[string]string, settings map[string]any) error {
		_, err := s.CreateEnvironment(mallory, control.NewEnvironment{Secrets: secrets, Environment: intent.Environment{
			ProjectID: e.ProjectID, Name: name, Source: intent.Source{URL: url, Branch: "main"}, Settings: settings,
			Halted: true,
		}})
		return err
	}
	own := map[string]string{source.SecretGitPassword: "my own"}
	for what, err := range map[string]error{
		"a new environment": create("a", "https://evil.example.net/x.git", nil, nil),
		"another port":      create("b", "https://git.example.com:8443/shop.git", nil, nil),
		"without TLS":       create("c", "http://git.example.com/shop.git", nil, nil),
		"a proxy": create("d", "https://git.example.com/shop.git", nil,
			map[string]any{"git_proxy": "http://evil.example.net:3128"}),
		"a proxy, later": s.SetSetting(mallory, e.ID, "git_proxy", "http://evil.example.net:3128"),
	} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	moved := e
	moved.Source.URL = "https://evil.example.net/x.git"
	if _, err := s.UpdateEnvironment(mallory, moved); !fault.Is(err, fault.Forbidden) {
		t.Errorf("another source: %v", err)
	}
	if err := create("g", "https://git.example.com/other.git", nil, nil); err != nil {
		t.Errorf("another repository of the same server: %v", err)
	}
	if err := create("f", "https://elsewhere.example.org/x.git", own, nil); err != nil {
		t.Errorf("another server, with credentials for it: %v", err)
	}
	if _, err := s.UpdateEnvironment(admin, moved); err != nil {
		t.Errorf("an administrator: %v", err)
	}
}
