package control_test

import (
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/source"
)

// An installer prints the server's key and the credentials of the environment, as they are
// and encoded, in its output, its command and its error. None of that reaches the report,
// the notice or the log.
func TestReportsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const token = "tok3n-of-the-forge"
	if err := s.SetSecret(t.Context(), s.env, source.SecretForgeToken, token); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(file))
	key := fields[len(fields)-1]
	coded := base64.StdEncoding.EncodeToString([]byte("user:" + token))
	s.parts.installs = func(out build.Output) (string, error) {
		out("ERROR: Invalid requirement: "+string(file), "header Basic "+coded+"\n")
		return "pip install --token " + token, errors.New("cannot read " + key)
	}
	id := s.request("api")
	c, _ := s.done(id)
	_, stages, err := s.store.Compile(t.Context(), id)
	if err != nil || *c.Success {
		t.Fatalf("success %v, %v", *c.Success, err)
	}
	var all strings.Builder
	for _, stage := range stages {
		all.WriteString(stage.Command + stage.Output + stage.ErrOutput)
	}
	if last := stages[len(stages)-1]; !strings.Contains(last.Output, "Invalid requirement") ||
		!strings.Contains(last.ErrOutput, "cannot read ***") {
		t.Errorf("the report says %q and %q", last.Output, last.ErrOutput)
	}
	_, notices := s.unread(1)
	for _, n := range notices {
		all.WriteString(n.Title + n.Message)
	}
	s.Stop()
	all.WriteString(strings.Join(s.log.lines(), "\n"))
	for _, secret := range []string{key, token, coded} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%q is in\n%s", secret, all.String())
		}
	}
}

// The exception of a plug-in quotes a password. It is in the diagnostics of no compile: not of a dry run of a commit,
// whose reader may be anybody who may push, and not if another secret looks like a piece of JSON.
func TestDiagnosticsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	const token = "tok3n-of-the-forge"
	for name, value := range map[string]string{
		source.SecretForgeToken: token, source.VariablePrefix + "ODD": `"message":`,
	} {
		if err := s.SetSecret(t.Context(), s.env, name, value); err != nil {
			t.Fatal(err)
		}
	}
	s.parts.mu.Lock()
	s.parts.broken, s.parts.says = true, "cannot log in with "+token
	s.parts.mu.Unlock()
	id, err := s.StartDryRun(t.Context(), s.env, control.DryRunRequest{Commit: "feature"})
	if err != nil {
		t.Fatal(err)
	}
	preview := s.looked(id, ended)
	if preview.Compile == nil {
		t.Fatalf("%+v", preview)
	}
	for name, id := range map[string]intent.CompileID{"a dry run": *preview.Compile, "a compile": s.request("api")} {
		if name == "a compile" {
			s.done(id)
		}
		c, _, err := s.store.Compile(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(c.Diagnostics); strings.Contains(text, token) ||
			!strings.Contains(text, "cannot log in with ***") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
