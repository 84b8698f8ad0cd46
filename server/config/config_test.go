package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// An operator's file of an Inmanta server is read as it is: unknown options are ignored.
// Drop-ins override the file, environment variables override drop-ins, and flags
// override everything.
func TestPrecedenceOfSources(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "inmanta.cfg")
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(
		file,
		"[config]\nstate-dir=/srv/state\n[lsm]\nno-such-option=1\n[agent]\nhandler-timeout=2\n"+
			"executor-retention-time=5\n[server]\nbind-port=1000\n",
	)
	write(filepath.Join(dir, "inmanta.d", "more.cfg"), "[agent]\nhandler_timeout = 7\n")
	c, err := Load(file, []string{"ORDAIN_AGENT_EXECUTOR_RETENTION_TIME=9", "ORDAIN_SERVER_BIND_PORT=2000"},
		map[string]string{"server.bind-port": "3000"})
	if err != nil {
		t.Fatal(err)
	}
	if c.StateDir != "/srv/state" || c.HandlerTimeout != 7*time.Second || c.ExecutorRetention != 9*time.Second ||
		c.BindPort != 3000 {
		t.Errorf("got %+v", c)
	}
	if c.Python != "python3" {
		t.Errorf("python is %q; the default was lost", c.Python)
	}
}

// Values may be in quotes and followed by comments.
func TestQuotesAndComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ordain.cfg")
	text := "[config]\nstate-dir = \"/srv/a # b\"\n[server]\nbind-port = 1000 ; ours\nlog-level=debug # for now\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.StateDir != "/srv/a # b" || c.BindPort != 1000 || c.LogLevel != "debug" {
		t.Errorf("got %q, %d, %q", c.StateDir, c.BindPort, c.LogLevel)
	}
}

// A wrong option is rejected; the error names it and says what it should be.
func TestErrorsNameTheOption(t *testing.T) {
	for name, value := range map[string]string{
		"server.bind-port":              "99999",
		"server.bind-address":           "0.0.0.0",
		"server.log-level":              "loud",
		"agent.executor-retention-time": "a while",
		"compiler.memory-max":           "-1",
	} {
		_, err := Load("", nil, map[string]string{name: value})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v; want a fault that names the option", name, value, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.cfg"), nil, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a missing file gives %v", err)
	}
}

// Files of an Inmanta server say auth = true and the method in another option; ours name the method.
func TestAuthentication(t *testing.T) {
	for _, c := range []struct{ auth, method, want string }{
		{"", "", AuthOff}, {"false", "database", AuthOff}, {"off", "", AuthOff}, {"no", "", AuthOff},
		{"true", "database", AuthDatabase}, {"true", "", AuthOIDC}, {"True", "oidc", AuthOIDC},
		{"yes", "jwt", AuthOIDC}, {"database", "", AuthDatabase}, {"oidc", "", AuthOIDC},
	} {
		given := map[string]string{
			"server.auth-method": c.method, "server.oidc-issuer": "https://login.example.org",
			"server.oidc-client-id": "ordain",
		}
		if c.auth != "" {
			given["server.auth"] = c.auth
		}
		if got, err := Load("", nil, given); err != nil || got.Auth != c.want {
			t.Errorf("%+v: %q, %v", c, got.Auth, err)
		}
	}
	for name, given := range map[string]map[string]string{
		"server.auth":              {"server.auth": "maybe"},
		"server.auth-method":       {"server.auth": "true", "server.auth-method": "guess"},
		"server.session-idle-time": {"server.session-idle-time": "1"},
		"unencrypted":              {"server.auth": "database", "server.bind-address": "0.0.0.0"},
		"nobody has to log in":     {"server.bind-address": "::", "server.acme-domains": "ordain.lan"},
		"public-url":               {"server.behind-proxy": "true", "server.public-url": "http://ordain.example.org"},
		"ssl-key-file":             {"server.ssl-cert-file": "cert.pem"},
		"acme-domains":             {"server.acme-domains": "localhost"},
		"every client":             {"server.trusted-proxies": "0.0.0.0/0"},
	} {
		if _, err := Load("", nil, given); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", given, err)
		}
	}
}

// The table in docs/server.md lists every option with its default and meaning.
func TestOptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "server.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range Describe() {
		section, name, _ := strings.Cut(o[0], ".")
		row := "| `[" + section + "] " + name + "` | " + cmp.Or(o[1], "—") + " | " + o[2] + " |"
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/server.md lacks the row\n%s", row)
		}
	}
}

// The limits of provisioners are checked when the server starts.
func TestOptionsOfClusters(t *testing.T) {
	c, err := Load("", nil, map[string]string{"cluster.lease": "60", "cluster.plugins-folder": "/srv/plugins"})
	if err != nil {
		t.Fatal(err)
	}
	if c.ClusterLease != time.Minute || c.ClusterBackoff != 5*time.Second || c.ProvisionerIdle != 5*time.Minute ||
		c.ProvisionersMax != 8 || c.ProvisionerPlugins != "/srv/plugins" {
		t.Errorf("%+v", c)
	}
	for option, value := range map[string]string{
		"cluster.lease": "1", "cluster.backoff": "0", "cluster.provisioner-idle": "-1",
		"cluster.provisioners-max": "many",
	} {
		if _, err := Load("", nil, map[string]string{option: value}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s = %s: %v", option, value, err)
		}
	}
}

// The names and limits of the HTTP server are checked when it starts.
func TestOptionsOfTheHTTPServer(t *testing.T) {
	c, err := Load("", nil, map[string]string{"server.allowed-hosts": "ordain.lan, second.lan:8443"})
	if err != nil || len(c.AllowedHosts) != 2 || c.AllowedHosts[1] != "second.lan:8443" {
		t.Errorf("%q, %v", c.AllowedHosts, err)
	}
	if c.Connections != 1000 || c.UploadSize != 100<<20 {
		t.Errorf("%d connections, uploads of %d bytes", c.Connections, c.UploadSize)
	}
	for option, value := range map[string]string{
		"server.allowed-hosts": "https://ordain.lan/", "server.connections-max": "1", "server.upload-size-max": "0",
	} {
		if _, err := Load("", nil, map[string]string{option: value}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s = %s: %v", option, value, err)
		}
	}
	if _, err := Load("", nil, map[string]string{"server.allowed-hosts": "*"}); err == nil {
		t.Error("any name is allowed")
	}
}

// Other machines may reach the server once people log in and connections are encrypted; a refusal names all that lacks.
func TestOtherAddresses(t *testing.T) {
	for _, given := range []map[string]string{
		{"server.auth": "database", "server.behind-proxy": "true", "server.public-url": "https://ordain.example.org"},
		{
			"server.auth": "oidc", "server.ssl-cert-file": "cert.pem", "server.ssl-key-file": "key.pem",
			"server.oidc-issuer": "https://login.example.org", "server.oidc-client-id": "ordain",
		},
		{"server.auth": "database", "server.acme-domains": "ordain.example.org"},
	} {
		given["server.bind-address"] = "0.0.0.0"
		if _, err := Load("", nil, given); err != nil {
			t.Errorf("%v: %v", given, err)
		}
	}
	_, err := Load("", nil, map[string]string{"server.bind-address": "192.0.2.1"})
	for _, word := range []string{"log in", "unencrypted", "auth = database", "ssl-cert-file", "behind-proxy"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
	c, err := Load("", nil, map[string]string{"server.trusted-proxies": "10.0.0.5, 10.1.2.3/16"})
	if err != nil || len(c.TrustedProxies) != 2 || c.TrustedProxies[1].String() != "10.1.0.0/16" {
		t.Errorf("%v, %v", c.TrustedProxies, err)
	}
}

// The event bus is off, embedded or a cluster, and the options of each do not mix. No secret is in an error.
func TestOptionsOfTheBus(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("", nil, map[string]string{
		"bus.url": "tls://a.example.org:4222,nats://127.0.0.1", "bus.user": "ordain", "bus.password-file": password,
	})
	if err != nil || len(c.BusServers) != 2 || c.Bus != "" || c.BusPassword != "hunter2" ||
		!slices.Contains(c.Secrets(), "hunter2") {
		t.Errorf("%+v, %v", c, err)
	}
	for _, mode := range []string{"", BusOff, BusEmbedded} {
		if c, err := Load("", nil, map[string]string{"bus.url": mode}); err != nil || c.Bus != mode ||
			c.BusServers != nil {
			t.Errorf("%q: %q, %v", mode, c.Bus, err)
		}
	}
	for name, given := range map[string]map[string]string{
		"bus.url":        {"bus.url": "http://a.example.org"},
		"bus.url ":       {"bus.url": "a.example.org:4222"},
		"password-file":  {"bus.url": "nats://ordain:hunter2@a.example.org"},
		"not off":        {"bus.url": "nats://ordain:hunter2@a.example.org/%%"},
		"but no cluster": {"bus.user": "ordain", "bus.password-file": password},
		"bus.listen":     {"bus.url": "nats://127.0.0.1", "bus.listen": "10.0.0.5:4222"},
		"bus.user":       {"bus.url": "nats://127.0.0.1", "bus.user": "ordain"},
		"credentials-file": {
			"bus.url": "nats://a", "bus.user": "o", "bus.password-file": password, "bus.credentials-file": "x",
		},
		"bus.tls-cert": {"bus.url": "nats://127.0.0.1", "bus.tls-key": "key.pem"},
	} {
		_, err := Load("", nil, given)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), strings.TrimSpace(name)) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", given, err)
		}
	}
}
