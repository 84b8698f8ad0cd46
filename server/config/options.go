package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// option is one option: section.name in the file.
type option struct {
	name string
	def  string // default as text
	doc  string
	set  func(*Config, string) error
}

// DefaultWebConsole is where the packages of Inmanta put its web console.
const DefaultWebConsole = "/usr/share/inmanta/web-console"

// authByMethod is what server.auth = true means until the option server.auth-method is known.
const authByMethod = "true"

var options = []option{
	{name: "config.state-dir", def: "",
		doc: "folder for all data; empty: /var/lib/inmanta for root, else ordain in the XDG state directory",
		set: path(func(c *Config) *string { return &c.StateDir })},
	{name: "config.log-dir", def: "",
		doc: "folder for all logs; empty: /var/log/inmanta for root, else log in the state directory",
		set: path(func(c *Config) *string { return &c.LogDir })},
	{name: "config.cache-dir", def: "",
		doc: "folder for what can be fetched again: tools, wheels, database binaries; empty: a cache directory " +
			"on the filesystem of the state directory",
		set: path(func(c *Config) *string { return &c.CacheDir })},
	{name: "config.log-rotate-size", def: "104857600",
		doc: "size in bytes at which a log file is rotated to FILE.1, the one before to FILE.2 …; 0: no limit",
		set: bytes(func(c *Config) *uint64 { return &c.LogSize }, 4096)},
	{name: "config.log-rotate-age", def: "604800", doc: "seconds after which a log file is rotated; 0: never",
		set: seconds(func(c *Config) *time.Duration { return &c.LogAge })},
	{name: "config.log-rotate-keep", def: "10", doc: "rotated files that are kept of each log file",
		set: number(func(c *Config) *int { return &c.LogKeep }, 0, 10000)},
	{name: "config.log-retention", def: "2592000",
		doc: "seconds after which a rotated log file is removed; 0: never. For resource-actions logs the setting " +
			"resource_action_logs_retention of their environment counts instead",
		set: seconds(func(c *Config) *time.Duration { return &c.LogRetention })},
	{name: "server.audit-retention", def: "0",
		doc: "seconds after which entries of the audit trail are dropped, 30 days at least; 0: never",
		set: func(c *Config, s string) error {
			if err := seconds(func(c *Config) *time.Duration { return &c.AuditRetention })(c, s); err != nil {
				return err
			}
			if c.AuditRetention != 0 && c.AuditRetention < 31*24*time.Hour {
				return fmt.Errorf("%s is shorter than 31 days", c.AuditRetention)
			}
			return nil
		}},
	{name: "server.roles", def: "api,process,agent",
		doc: "what this process does, separated by commas: api answers people, programs and webhooks; process owns " +
			"environments and runs all work; agent is what remote agents talk to. Processes that share the work " +
			"need one database (database.url) and one key (server.secret-key-file)",
		set: func(c *Config, s string) error {
			c.Roles = nil
			for role := range strings.SplitSeq(s, ",") {
				role = strings.TrimSpace(role)
				switch {
				case !slices.Contains([]string{RoleAPI, RoleProcess, RoleAgent}, role):
					return fmt.Errorf("%.40q is no role; the roles are api, process and agent", role)
				case slices.Contains(c.Roles, role):
					return fmt.Errorf("the role %s is named twice", role)
				}
				c.Roles = append(c.Roles, role)
			}
			return nil
		}},
	{name: "server.secret-key-file", def: "",
		doc: "file with the key that seals stored credentials; the same on all hosts that share a database. " +
			"Empty: server/.secret.key in the state directory, made at the first start",
		set: path(func(c *Config) *string { return &c.SecretKeyFile })},
	{name: "server.bind-address", def: "127.0.0.1",
		doc: "address to listen on; only loopback addresses are allowed as long as nobody has to log in or " +
			"connections are not encrypted",
		set: text(func(c *Config) *string { return &c.BindAddress })},
	{name: "server.bind-port", def: "8888", doc: "TCP port; 0 takes any free one",
		set: number(func(c *Config) *int { return &c.BindPort }, 0, 65535)},
	{name: "server.public-url", def: "",
		doc: "address at which people reach the console, such as https://ordain.example.org; the links that are " +
			"sent to forges begin with it. Empty: the address that the server listens on",
		set: func(c *Config, s string) error {
			u, err := url.Parse(s)
			if s != "" &&
				(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
					u.RawQuery != "" || u.Fragment != "") {
				return fmt.Errorf("%q is not the address of a console", s)
			}
			c.PublicURL = strings.TrimSuffix(s, "/")
			return nil
		}},
	{name: "server.allowed-hosts", def: "",
		doc: "names under which clients reach the server, separated by commas, besides loopback addresses, " +
			"bind-address and the host of public-url; requests that name another host are refused",
		set: func(c *Config, s string) error {
			c.AllowedHosts = nil
			for _, name := range words(s) {
				if strings.ContainsAny(name, "/*@") {
					return fmt.Errorf("%q is not the name of a host, such as ordain.example.org", name)
				}
				c.AllowedHosts = append(c.AllowedHosts, name)
			}
			return nil
		}},
	{name: "web-ui.console-enabled", def: "true",
		doc: "whether a web console of Inmanta is served below /console/, if console-path has one",
		set: boolean(func(c *Config) *bool { return &c.WebConsole })},
	{name: "web-ui.console-path", def: DefaultWebConsole,
		doc: "folder with the built files of a web console, index.html among them; without it, /console leads to the " +
			"console of this server",
		set: path(func(c *Config) *string { return &c.WebConsolePath })},
	{name: "web-ui.features", def: "",
		doc: "features that the web console shows beyond its usual ones, separated by commas",
		set: func(c *Config, s string) error { c.WebConsoleFeatures = words(s); return nil }},
	{name: "server.connections-max", def: "1000",
		doc: "connections that may be open at a time; when there are more, idle ones are closed",
		set: number(func(c *Config) *int { return &c.Connections }, 10, 1_000_000)},
	{name: "server.upload-size-max", def: "104857600",
		doc: "bytes of the largest request that stores a file, also after decompression; other requests may " +
			"have 10 MiB",
		set: func(c *Config, s string) error {
			n, err := strconv.ParseUint(s, 10, 31)
			if err != nil || n < 1<<20 {
				return fmt.Errorf("%q is not a number of bytes from 1048576 to 2147483647", s)
			}
			c.UploadSize = n
			return nil
		}},
	{name: "server.auth", def: AuthOff,
		doc: "who may use the server: off (everybody who reaches it), database (people log in with a password), oidc " +
			"(also at an identity provider); Inmanta's true, with server.auth-method, is understood",
		set: func(c *Config, s string) error {
			switch s = strings.ToLower(s); s {
			case AuthOff, AuthDatabase, AuthOIDC:
				c.Auth = s
				return nil
			}
			on, err := strconv.ParseBool(s)
			switch {
			case s == "yes" || s == "on" || err == nil && on:
				c.Auth = authByMethod
			case s == "no" || err == nil:
				c.Auth = AuthOff
			default:
				return fmt.Errorf("%q is neither off, database nor oidc", s)
			}
			return nil
		}},
	{name: "server.ssl-cert-file", def: "",
		doc: "file with the server's certificate and the chain up to its authority, in PEM; with it the server " +
			"speaks HTTPS only. When the file changes, the server uses the new certificate",
		set: path(func(c *Config) *string { return &c.CertFile })},
	{name: "server.ssl-key-file", def: "", doc: "file with the key of the certificate, in PEM",
		set: path(func(c *Config) *string { return &c.KeyFile })},
	{name: "server.ssl-ca-cert-file", def: "",
		doc: "file with the authorities by which clients know the server, in PEM; a certificate that is not one of " +
			"theirs is not used",
		set: path(func(c *Config) *string { return &c.CAFile })},
	{name: "server.acme-domains", def: "",
		doc: "names of hosts, separated by commas, for which the server gets certificates by itself, by ACME's " +
			"challenge tls-alpn-01: the authority must reach the server on port 443 of each",
		set: func(c *Config, s string) error {
			c.ACMEDomains = words(s)
			for _, name := range c.ACMEDomains {
				if !strings.Contains(name, ".") || strings.ContainsAny(name, "/*@:") {
					return fmt.Errorf("%q is not the whole name of a host, such as ordain.example.org", name)
				}
			}
			return nil
		}},
	{name: "server.acme-email", def: "", doc: "address at which the ACME authority reaches you",
		set: text(func(c *Config) *string { return &c.ACMEEmail })},
	{name: "server.acme-directory", def: "https://acme-v02.api.letsencrypt.org/directory",
		doc: "URL of the ACME authority",
		set: func(c *Config, s string) error {
			if !strings.HasPrefix(s, "https://") {
				return fmt.Errorf("%q is not a URL that begins with https://", s)
			}
			c.ACMEDirectory = s
			return nil
		}},
	{name: "server.acme-ca-file", def: "",
		doc: "file with the authorities of the ACME authority's own certificate, in PEM; empty: those of the machine",
		set: path(func(c *Config) *string { return &c.ACMECAFile })},
	{name: "server.behind-proxy", def: "false",
		doc: "whether clients reach the server only through a proxy that serves HTTPS at public-url, so that it may " +
			"listen on other addresses than loopback without TLS of its own",
		set: boolean(func(c *Config) *bool { return &c.BehindProxy })},
	{name: "server.trusted-proxies", def: "",
		doc: "addresses and networks of proxies, separated by commas, such as 10.0.0.5 or 10.1.0.0/16, whose " +
			"X-Forwarded-For and X-Forwarded-Proto say which client sent a request; others' are ignored",
		set: func(c *Config, s string) error {
			c.TrustedProxies = nil
			for _, word := range words(s) {
				network, err := parseNetwork(word)
				if err != nil {
					return err
				}
				if network.Bits() == 0 {
					return fmt.Errorf("%s would trust every client", word)
				}
				c.TrustedProxies = append(c.TrustedProxies, network)
			}
			return nil
		}},
	{name: "server.session-idle-time", def: "28800",
		doc: "seconds after which a login ends that is not used; a page that is only left open is not used",
		set: atLeast(60, func(c *Config) *time.Duration { return &c.SessionIdle })},
	{name: "server.session-lifetime", def: "604800", doc: "seconds after which a login ends however much it is used",
		set: atLeast(60, func(c *Config) *time.Duration { return &c.SessionLifetime })},
	{name: "server.token-lifetime-max", def: "31536000",
		doc: "seconds that a personal token may last at most",
		set: atLeast(60, func(c *Config) *time.Duration { return &c.TokenLifetime })},
	{name: "server.ci-issuers", def: "https://token.actions.githubusercontent.com https://gitlab.com",
		doc: "addresses, separated by spaces, of the issuers of identity tokens of CI jobs that administrators of a " +
			"project may trust; administrators of the server may trust any",
		set: func(c *Config, s string) error {
			c.CIIssuers = nil
			for issuer := range strings.FieldsSeq(s) {
				issuer, err := issuerURL(issuer)
				if err != nil {
					return err
				}
				c.CIIssuers = append(c.CIIssuers, issuer)
			}
			return nil
		}},
	{name: "server.oidc-issuer", def: "",
		doc: "address of the identity provider at which people log in with server.auth = oidc; the address of this " +
			"server with the path /login/oidc/callback must be registered there",
		set: func(c *Config, s string) (err error) {
			if s != "" {
				c.OIDCIssuer, err = issuerURL(s)
			}
			return err
		}},
	{name: "server.oidc-client-id", def: "", doc: "id by which the identity provider knows this server",
		set: text(func(c *Config) *string { return &c.OIDCClient })},
	{name: "server.oidc-client-secret", def: "",
		doc: "secret of this server at the identity provider; better keep it in server.oidc-client-secret-file. " +
			"Empty: the provider asks for none",
		set: text(func(c *Config) *string { return &c.OIDCSecret })},
	{name: "server.oidc-client-secret-file", def: "",
		doc: "file with the secret of this server at the identity provider",
		set: secretFile(func(c *Config) *string { return &c.OIDCSecret })},
	{name: "server.oidc-scopes", def: "openid profile email", doc: "scopes to ask the identity provider for",
		set: func(c *Config, s string) error { c.OIDCScopes = strings.Fields(s); return nil }},
	{name: "server.oidc-username-claim", def: "preferred_username", doc: "claim that becomes the user name",
		set: text(func(c *Config) *string { return &c.OIDCUsernameClaim })},
	{name: "server.oidc-groups-claim", def: "groups",
		doc: "claim with the names of the groups of a user, to which roles can be given",
		set: text(func(c *Config) *string { return &c.OIDCGroupsClaim })},
	{name: "server.oidc-name", def: "your organisation", doc: "name of the identity provider, as people know it",
		set: text(func(c *Config) *string { return &c.OIDCName })},
	{name: "server.log-level", def: "info", doc: "debug, info, warn or error",
		set: func(c *Config, s string) error {
			switch s = strings.ToLower(s); s {
			case "debug", "info", "warn", "error":
				c.LogLevel = s
				return nil
			}
			return fmt.Errorf("%q is not a log level", s)
		}},
	{
		name: "database.url",
		def:  "",
		doc:  "URL of your own PostgreSQL (postgres://…); empty: the server runs a private one",
		set:  text(func(c *Config) *string { return &c.DatabaseURL }),
	},
	{
		name: "database.bin-dir",
		def:  "",
		doc:  "folder with the programs of PostgreSQL for the private one; empty: they are found or fetched",
		set:  path(func(c *Config) *string { return &c.PostgresBin }),
	},
	{name: "bus.url", def: "",
		doc: "how several server processes tell each other what changed: off (not at all), embedded (one of them " +
			"runs a NATS server for all), or the servers of your own NATS cluster, separated by commas, such as " +
			"tls://nats-1.example.org:4222; empty: embedded where several processes may share the work, else off",
		set: busURL},
	{name: "bus.listen", def: "",
		doc: "host and port of the embedded NATS server, as the other server processes reach them, such as " +
			"10.0.0.5:4222; empty: any port of the loopback interface, for processes on this machine only",
		set: text(func(c *Config) *string { return &c.BusListen })},
	{name: "bus.tls-ca", def: "",
		doc: "file with the authorities of the certificates of your NATS cluster, in PEM; empty: those of the machine",
		set: path(func(c *Config) *string { return &c.BusTLSCA })},
	{name: "bus.tls-cert", def: "", doc: "file with a certificate by which your NATS cluster knows us, in PEM",
		set: path(func(c *Config) *string { return &c.BusTLSCert })},
	{name: "bus.tls-key", def: "", doc: "file with the key of that certificate, in PEM",
		set: path(func(c *Config) *string { return &c.BusTLSKey })},
	{name: "bus.user", def: "", doc: "user name for your NATS cluster",
		set: text(func(c *Config) *string { return &c.BusUser })},
	{name: "bus.password-file", def: "", doc: "file with the password of that user",
		set: secretFile(func(c *Config) *string { return &c.BusPassword })},
	{name: "bus.credentials-file", def: "",
		doc: "file with the JWT and the seed of a user of your NATS cluster (.creds), instead of a user name",
		set: path(func(c *Config) *string { return &c.BusCredentials })},
	{name: "cluster.resource-store", def: "folder",
		doc: "where the contents of plug-in resources are kept, sealed: in a folder, or in a bucket of an " +
			"S3-compatible service (s3)",
		set: resourceStore},
	{name: "cluster.resource-folder", def: "",
		doc: "that folder; several server processes must name one that all of them reach, or use s3. Empty: " +
			"server/.resources in the state directory, if this process has all roles",
		set: path(func(c *Config) *string { return &c.ResourceFolder })},
	{name: "cluster.s3-endpoint", def: "",
		doc: "address of the S3-compatible service, such as https://s3.eu-central-1.amazonaws.com",
		set: s3Endpoint},
	{name: "cluster.s3-bucket", def: "", doc: "name of the bucket; it must exist",
		set: text(func(c *Config) *string { return &c.S3Bucket })},
	{name: "cluster.s3-prefix", def: "", doc: "what the names of objects begin with, such as ordain/resources",
		set: text(func(c *Config) *string { return &c.S3Prefix })},
	{name: "cluster.s3-region", def: "", doc: "region of the bucket; empty: the service is asked",
		set: text(func(c *Config) *string { return &c.S3Region })},
	{name: "cluster.s3-access-key-file", def: "", doc: "file with the id of an access key for the bucket",
		set: secretFile(func(c *Config) *string { return &c.S3AccessKey })},
	{name: "cluster.s3-secret-key-file", def: "", doc: "file with the secret of that access key",
		set: secretFile(func(c *Config) *string { return &c.S3SecretKey })},
	{name: "cluster.max-resource-size", def: "268435456", doc: "bytes that one plug-in resource may have",
		set: resourceSize},
	{name: "cluster.max-resource-total", def: "0",
		doc: "bytes that all versions of the plug-in resources of a project may have together, and likewise those " +
			"that are shared; 0: no limit",
		set: bytes(func(c *Config) *uint64 { return &c.MaxResourceTotal }, 1)},
	{name: "compiler.python", def: "python3", doc: "Python interpreter for compilers and executors",
		set: text(func(c *Config) *string { return &c.Python })},
	{name: "compiler.timeout", def: "900", doc: "seconds that one compile may take",
		set: seconds(func(c *Config) *time.Duration { return &c.CompileTimeout })},
	{
		name: "compiler.concurrency",
		def:  "0",
		doc: "compiles that run at a time, over all environments; as many previews may run beside them. 0: one " +
			"for each processor, and at least two",
		set: number(func(c *Config) *int { return &c.CompileConcurrency }, 0, 1000),
	},
	{name: "compiler.memory-max", def: "0", doc: "bytes of memory that one compile may take; 0: no limit",
		set: bytes(func(c *Config) *uint64 { return &c.CompileMemory }, 0)},
	{name: "agent-server.bind-address", def: "127.0.0.1", doc: "address at which the server of remote agents listens",
		set: text(func(c *Config) *string { return &c.AgentAddress })},
	{name: "agent-server.bind-port", def: "off",
		doc: "TCP port of the server of remote agents; 0 takes any free one. off: a process with all roles has none, " +
			"and one with the role agent takes 8889",
		set: func(c *Config, s string) error {
			if strings.EqualFold(s, "off") {
				c.AgentPort = AgentPortOff
				return nil
			}
			return number(func(c *Config) *int { return &c.AgentPort }, 0, 65535)(c, s)
		}},
	{name: "agent-server.public-url", def: "",
		doc: "address at which agents reach their server, such as https://agents.example.org:8889; it is in join " +
			"tokens. Every server process needs it, unless one process has all roles. Empty: where this process " +
			"listens",
		set: func(c *Config, s string) error {
			u, err := url.Parse(s)
			if s != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
				u.Fragment != "" || strings.Trim(u.Path, "/") != "") {
				return fmt.Errorf("%q is not an address such as https://agents.example.org:8889", s)
			}
			c.AgentURL = strings.TrimSuffix(s, "/")
			return nil
		}},
	{name: "agent-server.hosts", def: "",
		doc: "names and addresses, separated by commas, under which agents reach their server, besides that of " +
			"public-url; the certificate that the server makes is for all of them",
		set: func(c *Config, s string) error { c.AgentHosts = words(s); return nil }},
	{name: "agent-server.ssl-cert-file", def: "",
		doc: "file with a certificate for the server of remote agents and its chain, in PEM; empty: the server makes " +
			"one",
		set: path(func(c *Config) *string { return &c.AgentCertFile })},
	{name: "agent-server.ssl-key-file", def: "", doc: "file with the key of that certificate, in PEM",
		set: path(func(c *Config) *string { return &c.AgentKeyFile })},
	{name: "agent-server.ssl-ca-cert-file", def: "",
		doc: "file with the authority that this certificate goes back to, in PEM, which agents then rely on alone; " +
			"empty: they rely on the authorities that their machines know",
		set: path(func(c *Config) *string { return &c.AgentCAFile })},
	{name: "agent-server.connections-max", def: "20000", doc: "agents that may be connected to this process at a time",
		set: number(func(c *Config) *int { return &c.AgentConnections }, 1, 1_000_000)},
	{name: "agent-server.certificate-lifetime", def: "2592000",
		doc: "seconds that the certificate of an agent is valid; it is renewed when a third of that is left",
		set: atLeast(3600, func(c *Config) *time.Duration { return &c.AgentCertLifetime })},
	{name: "agent.executor-retention-time", def: "60", doc: "seconds after which an idle executor process ends",
		set: seconds(func(c *Config) *time.Duration { return &c.ExecutorRetention })},
	{
		name: "agent.executor-venv-retention-time",
		def:  "3600",
		doc:  "seconds after which an unused virtual environment is removed",
		set:  seconds(func(c *Config) *time.Duration { return &c.ExecutorVenvRetention }),
	},
	{name: "agent.executor-cap", def: "3",
		doc: "executors that one agent may have at a time, such as those of two versions of a module during an " +
			"upgrade; the least recently used idle one ends to make room",
		set: number(func(c *Config) *int { return &c.ExecutorCap }, 1, 1000)},
	{name: "agent.executor-environment-cap", def: "16",
		doc: "executor processes that one environment may have at a time; the one that has been idle longest " +
			"ends to make room",
		set: number(func(c *Config) *int { return &c.ExecutorProcesses }, 1, 1000)},
	{name: "agent.executor-memory-max", def: "4294967296",
		doc: "bytes of memory that an executor, and each program that it starts, may take, not counting the stacks " +
			"of its threads; 0: no limit",
		set: bytes(func(c *Config) *uint64 { return &c.ExecutorMemory }, 64<<20)},
	{
		name: "agent.executor-file-size-max",
		def:  "0",
		doc:  "bytes of the largest file that a handler may write; 0: no limit",
		set:  bytes(func(c *Config) *uint64 { return &c.ExecutorFileSize }, 1<<20),
	},
	{
		name: "agent.executor-children-max",
		def:  "256",
		doc: "processes that the handlers of one executor may have running at a time; 0: no limit. Where executors " +
			"are isolated, the kernel refuses more; elsewhere an executor that has more is ended",
		set: number(func(c *Config) *int { return &c.ExecutorChildren }, 0, 1_000_000),
	},
	{
		name: "agent.executor-daemons",
		def:  "end",
		doc: "what happens to programs that handlers left running on this machine when their executor ends: " +
			"end or keep",
		set: func(c *Config, s string) error {
			if s != "end" && s != "keep" {
				return fmt.Errorf("%q is neither end nor keep", s)
			}
			c.ExecutorKeepDaemons = s == "keep"
			return nil
		},
	},
	{name: "agent.executor-disk-max", def: "0",
		doc: "bytes that the virtual environments and handler sources of one environment may take on disk; " +
			"those unused longest are removed first, those in use never; 0: no limit",
		set: bytes(func(c *Config) *uint64 { return &c.ExecutorDisk }, 1<<20)},
	{name: "agent.executor-environment", def: "",
		doc: "names of variables of the server's environment that handlers see too, separated by commas, such " +
			"as HTTPS_PROXY; store secrets with `ordain environment secret` instead",
		set: func(c *Config, s string) error {
			c.ExecutorEnvironment = nil
			for name := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
				if strings.Contains(name, "=") || strings.HasPrefix(name, "ORDAIN_") ||
					strings.HasPrefix(name, "PYTHON") {
					return fmt.Errorf("%q is not the name of a variable that can be passed on", name)
				}
				c.ExecutorEnvironment = append(c.ExecutorEnvironment, name)
			}
			return nil
		}},
	{name: "isolation.mode", def: "on",
		doc: "whether compiles and handlers are confined to their own environment: on, as far as the kernel offers " +
			"it; require, or else the server does not start; off",
		set: func(c *Config, s string) error {
			if s != "on" && s != "off" && s != "require" {
				return fmt.Errorf("%q is not on, off or require", s)
			}
			c.Isolation = s
			return nil
		}},
	{name: "isolation.allow-read", def: "",
		doc: "absolute paths, separated by commas, that compiles and handlers of every environment may read, such " +
			"as a folder of shared certificates",
		set: paths(func(c *Config) *[]string { return &c.IsolationRead })},
	{name: "isolation.allow-write", def: "",
		doc: "absolute paths, separated by commas, that compiles and handlers of every environment may read and " +
			"write, such as folders of this machine that handlers manage",
		set: paths(func(c *Config) *[]string { return &c.IsolationWrite })},
	{name: "isolation.first-user", def: "2000000000",
		doc: "if the server runs as root, the code of the environment with number n runs as the user with this id " +
			"plus n, which needs no entry in /etc/passwd; 0: it runs as root, without its privileges",
		set: func(c *Config, s string) error {
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil || n != 0 && n < 1000 || n > 1<<32-2-UsersMax {
				return fmt.Errorf("%q is not the first of a range of user ids", s)
			}
			c.IsolationFirstUser = uint32(n)
			return nil
		}},
	{name: "isolation.network", def: "all",
		doc: "where compiles and handlers may connect to: all, none, or the only TCP ports, separated by commas",
		set: func(c *Config, s string) error {
			c.IsolationNoNetwork, c.IsolationPorts = s == "none", nil
			if s == "all" || s == "none" {
				return nil
			}
			for field := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
				port, err := strconv.ParseUint(field, 10, 16)
				if err != nil || port == 0 {
					return fmt.Errorf("%q is not a TCP port", field)
				}
				c.IsolationPorts = append(c.IsolationPorts, uint16(port))
			}
			if c.IsolationPorts == nil {
				return fmt.Errorf("%q is not all, none or a list of ports", s)
			}
			return nil
		}},
	{name: "cluster.provisioners-max", def: "8",
		doc: "provisioners that this process runs at a time, each for one project; when more projects have something " +
			"to do, they take turns. 0: none, so that only provisioners on other machines work",
		set: number(func(c *Config) *int { return &c.ProvisionersMax }, 0, 1000)},
	{name: "cluster.provisioner-idle", def: "300", doc: "seconds without a task after which a provisioner ends",
		set: between(func(c *Config) *time.Duration { return &c.ProvisionerIdle }, 1, 86400)},
	{name: "cluster.lease", def: "30",
		doc: "seconds that a provisioner may be silent before its tasks are given to others; it renews them every " +
			"third of this time",
		set: between(func(c *Config) *time.Duration { return &c.ClusterLease }, 5, 3600)},
	{name: "cluster.backoff", def: "5",
		doc: "seconds before a task is tried again that failed for the first time; the wait doubles up to two minutes",
		set: between(func(c *Config) *time.Duration { return &c.ClusterBackoff }, 1, 120)},
	{name: "cluster.plugins-folder", def: "",
		doc: "folder of further plug-ins for the provisioners that this process runs, see plugins.md; " +
			"every user must be able to read it. Empty: there are none",
		set: path(func(c *Config) *string { return &c.ProvisionerPlugins })},
	{name: "agent.handler-timeout", def: "600", doc: "seconds that a handler may take for one resource",
		set: seconds(func(c *Config) *time.Duration { return &c.HandlerTimeout })},
	{
		name: "git.ssh-agent",
		def:  "false",
		doc: "whether repositories over SSH without a key of their own may use the SSH agent of the server " +
			"(its SSH_AUTH_SOCK); this holds for every environment",
		set: boolean(func(c *Config) *bool { return &c.GitSSHAgent }),
	},
	{name: "git.refuse-networks", def: "guarded",
		doc: "addresses and networks, separated by commas, that the server does not connect to for repositories, " +
			"their proxies, forges and issuers of tokens. The word guarded means loopback, link-local and metadata " +
			"addresses as soon as people have to log in; none refuses nothing",
		set: func(c *Config, s string) error {
			c.GitGuarded, c.GitRefuse = false, nil
			if s == "none" {
				return nil
			}
			for _, word := range words(s) {
				if word == "guarded" {
					c.GitGuarded = true
					continue
				}
				network, err := parseNetwork(word)
				if err != nil {
					return err
				}
				c.GitRefuse = append(c.GitRefuse, network)
			}
			return nil
		}},
	{name: "git.allow-networks", def: "",
		doc: "addresses and networks of refuse-networks, separated by commas, that the server connects to " +
			"nevertheless, such as that of a Git server on the same machine",
		set: networks(func(c *Config) *[]netip.Prefix { return &c.GitAllow })},
	{name: "server.fact-expire", def: "3600", doc: "seconds after which a fact expires",
		set: seconds(func(c *Config) *time.Duration { return &c.FactExpire })},
	{
		name: "server.fact-renew",
		def:  "",
		doc:  "seconds after which a fact is fetched again; empty or 0: a third of server.fact-expire",
		set: func(c *Config, s string) error {
			if s == "" {
				return nil
			}
			return seconds(func(c *Config) *time.Duration { return &c.FactRenew })(c, s)
		},
	},
	{
		name: "scheduler.dry-runs",
		def:  "4",
		doc:  "resources that dry runs examine at a time in one environment, beside deployments",
		set:  number(func(c *Config) *int { return &c.DryRuns }, 1, 10000),
	},
	{
		name: "scheduler.fact-refreshes",
		def:  "4",
		doc:  "resources whose facts are fetched at a time in one environment, beside deployments",
		set:  number(func(c *Config) *int { return &c.FactRefreshes }, 1, 10000),
	},
	{name: "scheduler.concurrency", def: "64", doc: "resources deployed at a time in one environment",
		set: number(func(c *Config) *int { return &c.Concurrency }, 1, 10000)},
}

// UsersMax is how many user ids from IsolationFirstUser on a server may use: one for each environment
// that it ever had, and from the end of the range downward one for each project with a provisioner.
const UsersMax = 1 << 20

// paths takes a list of absolute paths, separated by commas.
func paths(field func(*Config) *[]string) func(*Config, string) error {
	return func(c *Config, s string) error {
		var list []string
		for each := range strings.SplitSeq(s, ",") {
			each = strings.TrimSpace(each)
			if each == "" {
				continue
			}
			if !filepath.IsAbs(each) {
				return fmt.Errorf("%q is not an absolute path", each)
			}
			list = append(list, filepath.Clean(each))
		}
		*field(c) = list
		return nil
	}
}

// between takes a number of seconds from least to most.
func between(field func(*Config) *time.Duration, least, most uint64) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a number of seconds from %d to %d", s, least, most)
		}
		*field(c) = time.Duration(n) * time.Second
		return nil
	}
}
