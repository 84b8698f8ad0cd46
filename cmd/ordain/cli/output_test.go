package cli_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/cli"
)

// A script redirects a command's output to a full disk. The exit status must say that
// the output is lost.
func TestLostOutputFailsTheCommand(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this platform has no device that is always full")
	}
	defer full.Close()
	project := t.TempDir()
	for name, text := range map[string]string{
		"project.yml": "name: full\n",
		"main.cf":     "x = 1\n",
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compile := []string{"compile", "--project", project, "--no-std", "-o", "json"}
	check := []string{"check", "--project", project, "--no-std", "-o", "json"}
	for _, args := range [][]string{compile, check, {"explain", "E0202"}, {"--help"}, {"version"}} {
		var out, said bytes.Buffer
		if status := cli.Main(args, strings.NewReader(""), &out, io.Discard); status != 0 || out.Len() == 0 {
			t.Errorf("%q: status %d, output %q", args, status, out.String())
		}
		status := cli.Main(args, strings.NewReader(""), full, &said)
		if status != 1 || !strings.Contains(said.String(), "the output could not be written") {
			t.Errorf("%q to a full device: status %d, said %q", args, status, said.String())
		}
	}
}
