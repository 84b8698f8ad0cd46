package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// Contents of plug-in resources are in a folder unless they are in S3; and in none if several processes would each have
// their own.
func TestResourceStore(t *testing.T) {
	dir := t.TempDir()
	access, secret := filepath.Join(dir, "access"), filepath.Join(dir, "secret")
	for file, content := range map[string]string{access: "AKIA1\n", secret: "geheim\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(pairs ...string) (Config, error) {
		given := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			given[pairs[i]] = pairs[i+1]
		}
		return Load("", nil, given)
	}
	c, err := load()
	if err != nil || c.ResourceStore != ResourcesFolder || c.MaxResourceSize != 256<<20 || c.MaxResourceTotal != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = load("server.roles", "api", "database.url", "postgres://db/ordain")
	if err != nil || c.ResourceStore != ResourcesOff {
		t.Errorf("%q, %v", c.ResourceStore, err)
	}
	c, err = load("server.roles", "api", "database.url", "postgres://db/ordain",
		"cluster.resource-folder", "/srv/shared")
	if err != nil || c.ResourceStore != ResourcesFolder || c.ResourceFolder != "/srv/shared" {
		t.Errorf("%q, %v", c.ResourceStore, err)
	}
	s3 := []string{
		"cluster.resource-store", "s3", "cluster.s3-endpoint", "https://s3.example.org/", "cluster.s3-bucket", "b",
		"cluster.s3-access-key-file", access, "cluster.s3-secret-key-file", secret,
	}
	c, err = load(s3...)
	if err != nil || c.ResourceStore != ResourcesS3 || c.S3Endpoint != "https://s3.example.org" ||
		c.S3AccessKey != "AKIA1" || c.S3SecretKey != "geheim" {
		t.Errorf("%+v, %v", c, err)
	}
	for lacks := 2; lacks < len(s3); lacks += 2 {
		given := append(append([]string{}, s3[:lacks]...), s3[lacks+2:]...)
		if _, err := load(given...); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), s3[lacks]) {
			t.Errorf("without %s: %v", s3[lacks], err)
		}
	}
	for option, value := range map[string]string{
		"cluster.resource-store": "tape", "cluster.max-resource-size": "0", "cluster.max-resource-total": "-1",
		"cluster.s3-endpoint":        "https://me:geheim@s3.example.org",
		"cluster.s3-access-key-file": filepath.Join(dir, "no"),
	} {
		_, err := load(option, value)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), option) ||
			strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s = %s: %v", option, value, err)
		}
	}
}
