package venv

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// CoreVersion is the version of inmanta-core that modules see. Its local part
// distinguishes it from every published version.
const CoreVersion = "20.1.0+ordain"

// coreRequires lists packages that modules import without requiring them, because
// inmanta-core brings them.
var coreRequires = []string{
	"Jinja2>=3,<4",
	"pydantic>=2.5,!=2.9.2,<3",
	"email-validator>=1,<3",
	"PyYAML>=6,<7",
	"more-itertools>=8",
	"packaging>=21.3",
	"python-dateutil>=2,<3",
	"typing_inspect>=0.9,<1",
	"ruamel.yaml>=0.17",
}

// writeCoreWheel writes the wheel that stands for inmanta-core into dir. It holds
// only metadata, always the same bytes.
func writeCoreWheel(dir string) error {
	path := filepath.Join(dir, "inmanta_core-"+CoreVersion+"-py3-none-any.whl")
	content, err := coreWheel()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".wheel-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(temp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	return err
}

func coreWheel() ([]byte, error) {
	info := "inmanta_core-" + CoreVersion + ".dist-info/"
	var metadata strings.Builder
	metadata.WriteString("Metadata-Version: 2.1\nName: inmanta-core\nVersion: " + CoreVersion + "\n" +
		"Summary: Stands for inmanta-core where Ordain runs modules\nRequires-Python: >=3.10\n")
	for _, r := range coreRequires {
		metadata.WriteString("Requires-Dist: " + r + "\n")
	}
	metadata.WriteString(
		"\nThe worker of Ordain carries the import surface of inmanta-core. This package has no code.\n",
	)
	files := []struct{ name, content string }{
		{info + "METADATA", metadata.String()},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: ordain\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256([]byte(f.content))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	record.WriteString(info + "RECORD,,\n")
	files = append(files, struct{ name, content string }{info + "RECORD", record.String()})

	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Store, Modified: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
		head.SetMode(0o644)
		entry, err := w.CreateHeader(head)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write([]byte(f.content)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var (
	requirementName = regexp.MustCompile(`^\s*([A-Za-z0-9][A-Za-z0-9._-]*)`)
	nameSeparators  = regexp.MustCompile(`[-_.]+`)
)

// distribution returns the normalized name of the package that a requirement asks for.
func distribution(requirement string) string {
	m := requirementName.FindStringSubmatch(requirement)
	if m == nil {
		return ""
	}
	return strings.ToLower(nameSeparators.ReplaceAllString(m[1], "-"))
}

// ownsCore reports whether the requirements list inmanta-core itself, so that the
// real one is to be installed.
func ownsCore(requirements []string) bool {
	for _, r := range requirements {
		if distribution(r) == "inmanta-core" {
			return true
		}
	}
	return false
}
