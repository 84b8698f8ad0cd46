package intent

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// gitSettings are the settings for fetching and verifying commits.
var gitSettings = []Setting{
	{
		Name: "git_depth", Group: GroupGit, Title: "Commits of history to fetch",
		Type:    SettingInt,
		Default: 0,
		Most:    1_000_000,
		Doc: "How many commits of history to fetch from the Git repository, for very large ones. 0 fetches all of " +
			"it. With a limit, authors of lines and force-pushes are known only that far back.",
	},
	{
		Name: "git_single_branch", Group: GroupGit, Title: "Fetch one branch only",
		Type:    SettingBool,
		Default: false,
		Doc:     "Fetch only the branch or tag of this environment from the Git repository.",
	},
	{
		Name: "git_submodules", Group: GroupGit, Title: "Check out submodules",
		Type:    SettingBool,
		People:  true,
		Default: false,
		Doc: "Check out the submodules of the Git repository too. Credentials go only to the host of the " +
			"repository itself.",
	},
	{
		Name: "git_max_file", Group: GroupGit, Title: "Largest file", Unit: MiB,
		Type:    SettingInt,
		People:  true,
		Default: 256,
		Most:    1_000_000,
		Doc: "Largest size in MiB of a file in the Git repository. A commit with a larger file is not checked out. " +
			"0 for any size.",
	},
	{
		Name: "git_proxy", Group: GroupGit, Title: "Proxy",
		Type:    SettingText,
		People:  true,
		Default: "",
		Check:   proxyCheck,
		Doc: "Proxy for the Git repository: an http://, https:// or socks5:// URL. Empty: the server's environment " +
			"variables decide. Store a URL with a password as the secret git-proxy instead.",
	},
	{
		Name: "git_ca_bundle", Group: GroupGit, Title: "Certificate authorities",
		Type:    SettingText,
		People:  true,
		Lines:   true,
		Default: "",
		Check:   bundleCheck,
		Doc:     "Certificate authorities to trust for the Git repository besides those of the machine, as PEM text.",
	},
	{
		Name: "git_known_hosts", Group: GroupGit, Title: "Known SSH hosts",
		Type:    SettingText,
		People:  true,
		Lines:   true,
		Default: "",
		Check:   CheckKnownHosts,
		Doc: "Keys of the SSH servers of Git repositories, besides those of the project, in the format of OpenSSH's " +
			"known_hosts.",
	},
	{
		Name: "git_host_keys", Group: GroupGit, Title: "Unknown SSH hosts",
		Type:    SettingText,
		People:  true,
		Default: "strict",
		Choices: []string{"strict", "accept-new"},
		Doc: "What to do when no key of an SSH server is known: strict refuses the server, accept-new accepts its " +
			"key and remembers it for the project. A key that changed is always refused.",
	},
}

func proxyCheck(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return errors.New(
			"write it as http://host:port, https://host:port or socks5://host:port",
		) // not err, which quotes a password
	}
	if u.User != nil {
		return errors.New("a setting is shown to everybody: set a proxy with a password as the secret git-proxy")
	}
	return nil
}

func bundleCheck(text string) error {
	rest := []byte(text)
	found := false
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("it holds a %s; give certificates only", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return errors.New("it holds a certificate that cannot be read")
		}
		found = true
	}
	if !found && strings.TrimSpace(text) != "" {
		return errors.New("it holds no certificate; it begins with -----BEGIN CERTIFICATE-----")
	}
	return nil
}

// CheckKnownHosts rejects text that is not in the format of OpenSSH's known_hosts.
func CheckKnownHosts(text string) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if strings.HasPrefix(fields[0], "@") {
			if fields[0] != "@revoked" && fields[0] != "@cert-authority" {
				return fmt.Errorf("line %d begins with a marker that is neither @revoked nor @cert-authority", n)
			}
			fields = fields[1:]
		}
		if len(fields) < 3 {
			return fmt.Errorf("line %d is not hosts, kind of key and key", n)
		}
		key, err := base64.StdEncoding.DecodeString(fields[2])
		// A key begins with the length and the name of its kind.
		if err != nil || len(key) < 8 || !strings.HasPrefix(string(key[4:]), fields[1]) {
			return fmt.Errorf("line %d holds no key of the kind that it names", n)
		}
	}
	return nil
}

// GitMaxFile returns how large a file of a repository may be, in bytes; 0: no limit.
func (e Environment) GitMaxFile() int64 { return int64(e.Int("git_max_file")) << 20 }
