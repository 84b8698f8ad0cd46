package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/source"
)

const (
	privateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nczNjcjN0\n-----END OPENSSH PRIVATE KEY-----\n"
	hostLine   = "git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINWhsbhRM+Gz8vOvVGDdEOMPZD1pDuwlb8VV+X5PYxZE"
)

// fetchedWith compiles and gives what the repository was fetched with.
func (s *stage) fetchedWith() gitsync.Source {
	s.t.Helper()
	s.done(s.request("api"))
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	return s.parts.source
}

// What a project has holds for its environments, unless they have their own.
func TestSecretsOfAProject(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	project := s.environment().ProjectID
	for name, value := range map[string]string{
		source.SecretGitUser: "ada", source.SecretGitPassword: "of the project",
		source.SecretSSHKey: privateKey, source.SecretSSHPassphrase: "pass",
		source.SecretGitProxy: "http://ada:pw@proxy:1",
	} {
		if err := s.SetProjectSecret(t.Context(), project, name, value); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.fetchedWith(); got.Credentials.Username != "ada" || got.Credentials.Password != "of the project" ||
		got.Credentials.SSHKey != privateKey ||
		got.Credentials.SSHPassphrase != "pass" ||
		got.Trust.Proxy != "http://ada:pw@proxy:1" ||
		got.Trust.Scope != project.String() {
		t.Errorf("fetched with %+v", got)
	}
	if err := s.SetSecret(t.Context(), s.env, source.SecretGitPassword, "its own"); err != nil {
		t.Fatal(err)
	}
	if got := s.fetchedWith(); got.Credentials.Username != "ada" || got.Credentials.Password != "its own" {
		t.Errorf("fetched with %+v", got)
	}
	if names, err := s.ProjectSecretNames(t.Context(), project); len(names) != 5 || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := s.SecretNames(t.Context(), s.env); !slices.Equal(names, []string{source.SecretGitPassword}) ||
		err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if err := s.SetProjectSecret(t.Context(), project, source.SecretGitUser, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.fetchedWith(); got.Credentials.Username != "" {
		t.Errorf("fetched with %+v", got)
	}
	// A sealed text opens at its place only.
	sealed, err := s.store.ProjectSecrets(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	moved := sealed[source.SecretGitPassword]
	if err := s.store.SetSecret(t.Context(), s.env, source.SecretGitPassword, moved); err != nil {
		t.Fatal(err)
	}
	if c, _ := s.done(s.request("api")); *c.Success {
		t.Error("the secret of the project was opened as one of its environment")
	}
}

// Values that can never work are refused at the door, and not repeated.
func TestSecretsThatCannotBe(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	project := s.environment().ProjectID
	for name, value := range map[string]string{
		source.SecretSSHKey: "ssh-ed25519 s3cr3t", source.SecretGitProxy: "s3cr3t",
		source.SecretGitPassword: "s3cr3t\nx", "git-pasword": "s3cr3t", "variable:X": "s3cr3t",
	} {
		err := s.SetProjectSecret(t.Context(), project, name, value)
		if !fault.Is(err, fault.Invalid) || strings.Contains(fmt.Sprintf("%+v", err), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "variable:X" {
			if err := s.SetSecret(t.Context(), s.env, name, value); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := s.SetProjectSecret(t.Context(), s.env, source.SecretGitUser, "x"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no such project: %v", err)
	}
}

// The known hosts of an environment and of its project are one list, and what
// is learnt is in it once.
func TestKnownHostsOfAProject(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	project := s.environment().ProjectID
	for range 2 {
		if err := s.LearnHostKey(t.Context(), project, hostLine); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.store.KnownHosts(t.Context(), project); got != hostLine+"\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.SetSetting(t.Context(), s.env, "git_known_hosts", "# ours"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSetting(t.Context(), s.env, "git_host_keys", "accept-new"); err != nil {
		t.Fatal(err)
	}
	if got := s.fetchedWith(); got.Trust.KnownHosts != "# ours\n"+hostLine+"\n" || !got.Trust.AcceptNew {
		t.Errorf("fetched with %+v", got)
	}
	for _, bad := range []string{"git.example.org", "h ssh-rsa AAAA!", "@odd h ssh-rsa " +
		"AAAA", strings.Replace(hostLine, "ssh-ed25519", "ssh-rsa", 1)} {
		if err := s.SetKnownHosts(t.Context(), project, bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := s.SetKnownHosts(t.Context(), project, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.fetchedWith(); got.Trust.KnownHosts != "# ours\n" {
		t.Errorf("fetched with %+v", got)
	}
}

// The repository does not decide whom the server shows its credentials to.
func TestTheRepositoryDoesNotDecideWhomToTrust(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, value := range map[string]any{"git_proxy": "http://evil:1", "git_host_keys": "accept-new",
		"git_known_hosts": hostLine, "git_ca_bundle": "", "git_submodules": true} {
		c, _ := s.ask("c-"+name, map[string]any{name: value})
		if *c.Success {
			t.Errorf("%s was taken from the repository", name)
		}
		if e := s.environment(); len(e.Protected) > 0 {
			t.Errorf("%+v", e.Protected)
		}
	}
	for name, value := range map[string]any{"git_proxy": "http://u:s3cr3t@h:1", "git_host_keys": "yes",
		"git_known_hosts": "h", "git_ca_bundle": "x", "git_depth": -1} {
		if err := s.SetSetting(t.Context(), s.env, name, value); !fault.Is(err, fault.Invalid) ||
			strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The options of an environment reach Git.
func TestOptionsOfASource(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, value := range map[string]any{"git_depth": 7, "git_single_branch": true, "git_submodules": true,
		"git_max_file": 3, "git_proxy": "socks5://h:1"} {
		if err := s.SetSetting(t.Context(), s.env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.fetchedWith(); got.Depth != 7 || got.Only != "main" || !got.Submodules || got.MaxFile != 3<<20 ||
		got.Trust.Proxy != "socks5://h:1" ||
		got.Trust.CABundle != "" {
		t.Errorf("fetched with %+v", got)
	}
}
