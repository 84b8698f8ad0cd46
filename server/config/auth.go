package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// jwtPrefix begins the names of sections with keys for JWTs.
const jwtPrefix = "auth_jwt_"

// jwtOptions are the options of such a section, in the order in which the names of variables are matched.
var jwtOptions = []string{"algorithm", "sign", "expire", "client-types", "issuer", "jwt-username-claim", "jwks-uri",
	"audience", "validate-cert", "jwks-request-timeout", "key"}

// jwtVariable splits the name of a variable such as INMANTA_AUTH_JWT_DEFAULT_KEY.
func jwtVariable(name string) (section, option string, ok bool) {
	rest, ok := strings.CutPrefix(name, "INMANTA_AUTH_JWT_")
	if !ok {
		return "", "", false
	}
	for _, o := range jwtOptions {
		if section, ok := strings.CutSuffix(rest, "_"+strings.ToUpper(strings.ReplaceAll(o, "-", "_"))); ok {
			return jwtPrefix + strings.ToLower(section), o, true
		}
	}
	return "", "", false
}

// jwtSections returns the options of all sections with keys for JWTs.
func jwtSections(values map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, value := range values {
		section, option, ok := strings.Cut(name, ".")
		if !ok || !strings.HasPrefix(section, jwtPrefix) {
			continue
		}
		if out[section] == nil {
			out[section] = map[string]string{}
		}
		out[section][option] = value
	}
	return out
}

// Secrets returns the secrets of the configuration, which must not get into logs and reports.
func (c Config) Secrets() (out []string) {
	if c.OIDCSecret != "" {
		out = append(out, c.OIDCSecret)
	}
	if c.BusPassword != "" {
		out = append(out, c.BusPassword)
	}
	for _, options := range c.JWT {
		if key := options["key"]; key != "" {
			out = append(out, key)
		}
	}
	return out
}

// checkOIDC checks that people can log in at an identity provider, if they are to.
func (c *Config) checkOIDC() error {
	bad := func(name, what, advice string) error {
		return fault.New("config.Load", fault.Invalid, "the option "+name+" is wrong: "+what).Hint(advice)
	}
	switch {
	case c.Auth != AuthOIDC:
		return nil
	case c.OIDCIssuer == "" && len(c.JWT) > 0:
		return nil // tokens of others count, and people log in with passwords
	case c.OIDCIssuer == "":
		return bad("server.oidc-issuer", "server.auth is oidc, and no identity provider is named",
			"set it to the address of the provider, such as https://login.example.org/realms/main")
	case c.OIDCClient == "":
		return bad("server.oidc-client-id", "the identity provider has to know this server by a name",
			"register a client at the provider and set its id")
	case !slices.Contains(c.OIDCScopes, "openid"):
		return bad("server.oidc-scopes", "the scope openid is missing", "such as: openid profile email groups")
	}
	return nil
}

// issuerURL reads the address of an issuer. Only one on this machine may be without encryption.
func issuerURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not the address of an issuer", s)
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return "", fmt.Errorf("%q does not begin with https://", s)
	}
	return s, nil
}

// secretFile reads a secret from a file.
func secretFile(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if s == "" {
			return nil
		}
		text, err := os.ReadFile(os.ExpandEnv(s))
		if err != nil {
			return err
		}
		if *field(c) = strings.TrimSpace(string(text)); *field(c) == "" {
			return fmt.Errorf("the file %s is empty", s)
		}
		return nil
	}
}
