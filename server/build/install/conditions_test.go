package install

import (
	"os"
	"path/filepath"
	"testing"
)

// Conditions are evaluated for the Python of the virtual environment, by its exact
// version if pyvenv.cfg has it.
func TestConditions(t *testing.T) {
	venv := t.TempDir()
	site := filepath.Join(venv, "lib", "python3.12", "site-packages")
	if Conditions(nil) != nil || Conditions([]string{venv}) != nil {
		t.Error("a Python that is not known judges")
	}
	holds := Conditions([]string{site})
	if !holds(`python_version >= "3.12"`) || holds(`python_version < "3.12"`) ||
		holds(`python_full_version >= "3.12.4"`) {
		t.Error("3.12 is taken for another version")
	}
	if err := os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), []byte("home = /usr/bin\nversion_info = "+
		"3.12.4.final.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if holds = Conditions([]string{site}); !holds(`python_full_version >= "3.12.4"`) ||
		holds(`python_full_version >= "3.12.5"`) {
		t.Error("3.12.4 is taken for another version")
	}
}
