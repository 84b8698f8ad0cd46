package source

import (
	"encoding/pem"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ordain.dev/ordain/internal/fault"
)

// Names of secrets.
const (
	SecretWebhook = "webhook"
	// SecretWebhookPrevious is the webhook's secret before the last change; it is valid, too.
	SecretWebhookPrevious = "webhook-previous"
	SecretGitUser         = "git-username"
	SecretGitPassword     = "git-password"
	// SecretSSHKey is a private key, SecretSSHPassphrase what it was sealed with.
	SecretSSHKey        = "git-ssh-key"
	SecretSSHPassphrase = "git-ssh-passphrase"
	// SecretGitProxy is the URL of a proxy with a password; it comes before the setting.
	SecretGitProxy = "git-proxy"
	// SecretForgeToken is what the forge of the repository is spoken to with.
	SecretForgeToken = "forge-token"
	// VariablePrefix begins the names of secrets that handlers find in their
	// process environment: variable:API_TOKEN is their API_TOKEN.
	VariablePrefix = "variable:"
)

// sharedSecrets are the names that an environment and its project may both have.
var sharedSecrets = []string{
	SecretWebhook,
	SecretWebhookPrevious,
	SecretGitUser,
	SecretGitPassword,
	SecretSSHKey,
	SecretSSHPassphrase,
	SecretGitProxy,
	SecretForgeToken,
}

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

const maxVariableName = 128

const opSet = "control.SetSecret"

// CheckSecret refuses a secret of an environment that nothing would ever read,
// or whose value can never work. The error quotes no value.
func CheckSecret(name, value string) error {
	variable, is := strings.CutPrefix(name, VariablePrefix)
	switch {
	case slices.Contains(sharedSecrets, name):
		return checkValue(name, value)
	case !is:
		return fault.New(opSet, fault.Invalid, "there is no secret called "+name).
			Hint("use " + strings.Join(sharedSecrets, ", ") + ", or " + VariablePrefix + "NAME for a variable of " +
				"handlers")
	case len(variable) > maxVariableName, !variableName().MatchString(variable):
		return fault.New(opSet, fault.Invalid, "a variable cannot be called "+variable).
			Hint("use letters, digits and _, at most 128, and begin with no digit")
	case strings.HasPrefix(variable, "ORDAIN_"), strings.HasPrefix(variable, "PYTHON"):
		return fault.New(opSet, fault.Forbidden, "the variable "+variable+" is the server's own").
			Hint("names that begin with ORDAIN_ or PYTHON decide how the executor runs")
	case strings.ContainsRune(value, 0):
		return fault.New(opSet, fault.Invalid, "a variable cannot hold a zero byte")
	}
	return nil
}

// CheckProjectSecret does the same for a secret of a project, which has no variables.
func CheckProjectSecret(name, value string) error {
	if !slices.Contains(sharedSecrets, name) {
		return fault.New("control.SetProjectSecret", fault.Invalid, "a project has no secret called "+name).
			Hint("use " + strings.Join(sharedSecrets, ", "))
	}
	return checkValue(name, value)
}

func checkValue(name, value string) error {
	if value == "" {
		return nil
	}
	switch name {
	case SecretSSHKey:
		block, _ := pem.Decode([]byte(strings.TrimSpace(value) + "\n"))
		if block == nil || !strings.Contains(block.Type, "PRIVATE KEY") {
			return fault.New(opSet, fault.Invalid, name+" is not a private key").
				Hint("give the whole file that ssh-keygen -t ed25519 wrote, the one without .pub")
		}
	case SecretGitProxy:
		if u, err := url.Parse(value); err != nil || u.Hostname() == "" ||
			!slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return fault.New(opSet, fault.Invalid, name+" is not the URL of a proxy").
				Hint("write it as http://user:password@host:port")
		}
	case SecretGitUser, SecretGitPassword:
		if strings.ContainsAny(value, "\r\n\x00") {
			return fault.New(opSet, fault.Invalid, name+" has several lines").Hint("give it alone, on one line")
		}
	}
	return nil
}
