// Package config reads the server's options from an INI file with the names of
// sections and options that Inmanta's operators know. Environment variables
// ORDAIN_<SECTION>_<OPTION> override the file, and flags override these. Every option
// is declared once, in options.go, with its default and its purpose.
package config

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/inifile"
)

// Config holds every option, checked.
type Config struct {
	StateDir string // all data
	LogDir   string // all logs
	CacheDir string // what can be fetched again: tools, wheels, database binaries

	Roles         []string // of this process: RoleAPI, RoleProcess, RoleAgent
	SecretKeyFile string   // empty: in the state directory

	BindAddress string
	BindPort    int // 0: any free one

	PublicURL    string   // of the console, for links; empty: where it listens
	AllowedHosts []string // names that clients may use for the server besides that of PublicURL
	Connections  int      // that may be open at a time

	// A web console of Inmanta: whether it is served, the folder with its files, and its features.
	WebConsole         bool
	WebConsolePath     string
	WebConsoleFeatures []string
	UploadSize         uint64 // bytes of the largest body of a request that stores a file

	Auth            string        // AuthOff, AuthDatabase or AuthOIDC
	SessionIdle     time.Duration // after which an unused session ends
	SessionLifetime time.Duration // after which any session ends

	TokenLifetime time.Duration // the longest of a personal token
	CIIssuers     []string      // that administrators of a project may trust
	// JWT are the sections auth_jwt_NAME of a file of Inmanta: their options by the name of the section.
	JWT map[string]map[string]string

	OIDCIssuer        string // of the identity provider
	OIDCClient        string // by which the provider knows this server
	OIDCSecret        string // empty: the client is a public one
	OIDCScopes        []string
	OIDCUsernameClaim string
	OIDCGroupsClaim   string
	OIDCName          string         // of the provider, for people
	CertFile, KeyFile string         // of the certificate; empty: none
	CAFile            string         // authorities that the certificate must be of; empty: any
	ACMEDomains       []string       // for which certificates are asked for; empty: none
	ACMEEmail         string         // where the ACME authority writes to
	ACMEDirectory     string         // URL of the ACME authority
	ACMECAFile        string         // authorities of the ACME authority's own certificate; empty: those of the machine
	BehindProxy       bool           // clients come through a proxy that serves HTTPS
	TrustedProxies    []netip.Prefix // proxies that say for which client they ask

	DatabaseURL string // empty: the embedded PostgreSQL
	PostgresBin string // folder with initdb and postgres; empty: found or fetched

	Bus                   string   // BusOff, BusEmbedded, or empty: as the roles need it, or BusServers
	BusServers            []string // of a cluster of NATS; empty: there is none
	BusListen             string   // host and port of the embedded server; empty: loopback
	BusTLSCA              string   // authorities of the cluster's certificates; empty: those of the machine
	BusTLSCert, BusTLSKey string   // certificate for the cluster; empty: none
	BusUser, BusPassword  string   // for the cluster
	BusCredentials        string   // file with a user's JWT and seed
	ResourceStore         string   // of the contents of plug-in resources: ResourcesFolder, ResourcesS3, ResourcesOff
	ResourceFolder        string   // empty: in the state directory
	S3Endpoint            string
	S3Bucket, S3Prefix    string
	S3Region              string
	S3AccessKey           string
	S3SecretKey           string
	MaxResourceSize       uint64 // bytes of one plug-in resource
	MaxResourceTotal      uint64 // bytes of all of a project; 0: no limit

	AgentAddress      string // at which the server of remote agents listens
	AgentPort         int    // AgentPortOff: there is none
	AgentURL          string // at which agents reach it; empty: where it listens
	AgentHosts        []string
	AgentCertFile     string // of its certificate; empty: the server makes one
	AgentKeyFile      string
	AgentCAFile       string // the authority of the certificate; empty: agents' machines know it
	AgentConnections  int
	AgentCertLifetime time.Duration // of agents' certificates

	Python string // interpreter of compilers and executors

	ExecutorRetention     time.Duration  // of an idle process
	ExecutorVenvRetention time.Duration  // of an unused virtual environment
	ExecutorCap           int            // executors that one agent has at a time
	ExecutorProcesses     int            // executor processes of one environment at a time
	ExecutorMemory        uint64         // bytes that an executor process may take; 0: no limit
	ExecutorFileSize      uint64         // bytes of the largest file that a handler may write; 0: no limit
	ExecutorChildren      int            // processes that an executor may have started; 0: no limit
	ExecutorKeepDaemons   bool           // what handlers left running outlives the executor
	ExecutorDisk          uint64         // bytes that the executors of one environment may keep on disk; 0: no limit
	ExecutorEnvironment   []string       // names of variables of ours that handlers see
	HandlerTimeout        time.Duration  // of one resource
	Isolation             string         // on, off or require
	IsolationRead         []string       // folders that code of every environment may read
	IsolationWrite        []string       // folders that it may write to
	IsolationFirstUser    uint32         // user ids of environments begin here; 0: they have none of their own
	IsolationNoNetwork    bool           // code of environments reaches no network
	IsolationPorts        []uint16       // the only TCP ports that it may connect to; empty: all
	ProvisionersMax       int            // provisioners that this server runs at a time; 0: none
	ProvisionerIdle       time.Duration  // after which one without tasks ends
	ProvisionerPlugins    string         // folder of further plug-ins; empty: there are none
	ClusterLease          time.Duration  // that a provisioner may be silent before its tasks go to others
	ClusterBackoff        time.Duration  // after a task failed for the first time
	Concurrency           int            // resources deployed at a time in one environment
	GitSSHAgent           bool           // repositories over SSH may use the server's agent
	GitAllow              []netip.Prefix // networks that are allowed although they are refused
	GitGuarded            bool           // reach.Guarded belongs to GitRefuse once people log in
	GitRefuse             []netip.Prefix // networks that repositories, proxies, forges and issuers must not be in
	DryRuns               int            // resources looked at by dry runs at a time in one environment
	FactRefreshes         int            // resources asked for facts at a time in one environment
	FactExpire            time.Duration  // a fact holds this long
	FactRenew             time.Duration  // a fact is asked for again after this
	CompileTimeout        time.Duration
	CompileConcurrency    int           // 0: by the number of processors
	CompileMemory         uint64        // bytes; 0: no limit
	AuditRetention        time.Duration // of an entry of the audit trail; 0: for ever
	LogLevel              string
	LogSize               uint64        // bytes after which a log file is set aside; 0: any
	LogAge                time.Duration // after which it is; 0: any
	LogKeep               int           // files kept beside each
	LogRetention          time.Duration // of a file that was set aside; 0: for ever
}

// The ports of the server of remote agents: that of a process with the role agent, and none.
const (
	AgentPortOff = -1
	agentPort    = 8889
)

// The roles of a process.
const (
	RoleAPI     = "api"
	RoleProcess = "process"
	RoleAgent   = "agent"
)

// Has reports whether this process has a role.
func (c Config) Has(role string) bool { return len(c.Roles) == 0 || slices.Contains(c.Roles, role) }

// Alone reports whether this process has all roles, so that it needs no other one.
func (c Config) Alone() bool { return c.Has(RoleAPI) && c.Has(RoleProcess) && c.Has(RoleAgent) }

// The ways in which people prove who they are.
const (
	AuthOff      = "off"      // not at all
	AuthDatabase = "database" // with a password of which the server keeps a hash
	AuthOIDC     = "oidc"     // at an identity provider, or with such a password
)

// Load reads the file (empty: none; its drop-ins file.d/*.cfg too), the environment and overrides, by
// section.option, in that order.
func Load(file string, environ []string, overrides map[string]string) (Config, error) {
	values := map[string]string{}
	if file != "" {
		if err := readFiles(file, values); err != nil {
			return Config{}, err
		}
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		for _, o := range options {
			if name == o.variable() {
				values[o.name] = value
			}
		}
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if section, option, ok := jwtVariable(name); ok {
			values[section+"."+option] = value
		}
	}
	for name, value := range overrides {
		values[name] = value
	}
	var c Config
	for _, o := range options {
		text, set := values[o.name]
		if !set {
			text = o.def
		}
		if err := o.set(&c, strings.TrimSpace(text)); err != nil {
			return Config{}, fault.Wrap("config.Load", fault.Invalid, err).
				Say("the option " + o.name + " is wrong").
				Hint("it is: " + o.doc)
		}
		delete(values, o.name)
	}
	c.JWT = jwtSections(values)
	if err := c.checkAuth(values); err != nil {
		return Config{}, err
	}
	if err := c.checkOIDC(); err != nil {
		return Config{}, err
	}
	if err := c.checkBus(); err != nil {
		return Config{}, err
	}
	if err := c.checkResources(); err != nil {
		return Config{}, err
	}
	if (c.AgentCertFile == "") != (c.AgentKeyFile == "") || c.AgentCAFile != "" && c.AgentCertFile == "" {
		return Config{}, fault.New("config.Load", fault.Invalid, "the certificate of the agent server is not complete").
			Hint("set [agent-server] ssl-cert-file and ssl-key-file, and ssl-ca-cert-file if you like, or none of them")
	}
	if c.AgentPort == AgentPortOff && !c.Alone() && c.Has(RoleAgent) {
		c.AgentPort = agentPort
	}
	if c.FactRenew == 0 {
		c.FactRenew = c.FactExpire / 3
	}
	if c.FactRenew < time.Second || c.FactRenew >= c.FactExpire {
		return Config{}, fault.New("config.Load", fault.Invalid, fmt.Sprintf("facts that expire after %s cannot "+
			"be renewed after %s", c.FactExpire, c.FactRenew)).
			Hint("server.fact-renew must be at least a second, and less than server.fact-expire")
	}
	return c, nil
}

// checkAuth settles how people prove who they are, and that no other machine reaches the server unless they have to,
// and unless connections are encrypted. others are
// the options that we do not have: Inmanta's files say auth = true, and the method in an option of its own.
func (c *Config) checkAuth(others map[string]string) error {
	bad := func(name, what, advice string) error {
		return fault.New("config.Load", fault.Invalid, "the option "+name+" is wrong: "+what).Hint(advice)
	}
	if c.Auth == authByMethod {
		switch method := others["server.auth-method"]; method {
		case "database":
			c.Auth = AuthDatabase
		case "", "oidc", "jwt": // a server that takes tokens of others lets people log in, too
			c.Auth = AuthOIDC
		default:
			return bad("server.auth-method", fmt.Sprintf("%q is no method", method), "it is database, oidc or jwt")
		}
	}
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		return bad("server.ssl-cert-file", "a certificate needs a key, and a key a certificate",
			"set [server] ssl-cert-file and ssl-key-file, or neither")
	case c.CertFile != "" && len(c.ACMEDomains) > 0:
		return bad("server.acme-domains", "the certificate comes from files already",
			"set either [server] acme-domains, or ssl-cert-file and ssl-key-file")
	case !c.Alone() && c.DatabaseURL == "":
		return bad("server.roles", "processes that share the work need a database that all of them reach",
			"set [database] url (--database), or give this process all roles")
	case c.BehindProxy && !strings.HasPrefix(c.PublicURL, "https://"):
		return bad("server.behind-proxy", "links and the cookies of logins depend on the address at which the proxy "+
			"serves HTTPS", "set [server] public-url to it, such as https://ordain.example.org")
	}
	if ip := net.ParseIP(c.BindAddress); c.BindAddress == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	var lacks, advice []string
	if c.Auth == AuthOff {
		lacks = append(lacks, "nobody has to log in")
		advice = append(advice, "set [server] auth = database (or oidc)")
	}
	if !c.TLS() && !c.BehindProxy {
		lacks = append(lacks, "passwords would cross the network unencrypted")
		advice = append(
			advice,
			"set [server] ssl-cert-file and ssl-key-file, or acme-domains, or (when a proxy serves "+
				"HTTPS) behind-proxy = true",
		)
	}
	if len(lacks) == 0 {
		return nil
	}
	return bad("server.bind-address", c.BindAddress+" is not a loopback address, and "+strings.Join(lacks, ", and "),
		strings.Join(advice, "; ")+"; or listen on 127.0.0.1")
}

// readFiles reads the file and its drop-ins into values. Unknown options are left
// alone: one file may serve both Ordain and an Inmanta server during a move.
func readFiles(file string, values map[string]string) error {
	files := []string{file}
	dropIns, _ := filepath.Glob(strings.TrimSuffix(file, filepath.Ext(file)) + ".d/*.cfg")
	for _, name := range append(files, dropIns...) {
		text, err := os.ReadFile(name)
		var parsed inifile.File
		if err == nil {
			parsed, err = inifile.Parse(string(text))
		}
		if err != nil {
			return fault.Wrap("config.Load", fault.Invalid, err).
				Say("the configuration file " + name + " cannot be read")
		}
		for section, keys := range parsed {
			for key, value := range keys {
				values[strings.ToLower(section)+"."+strings.ReplaceAll(key, "_", "-")] = bare(value.Text)
			}
		}
	}
	return nil
}

// bare returns a value without the quotes around it, or else without a comment
// behind it.
func bare(value string) string {
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	for _, mark := range []string{" #", " ;"} {
		value, _, _ = strings.Cut(value, mark)
	}
	return strings.TrimSpace(value)
}

func (o option) variable() string {
	return "ORDAIN_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(o.name))
}

// Describe lists the options for documentation: name, default, meaning.
func Describe() [][3]string {
	var out [][3]string
	for _, o := range options {
		out = append(out, [3]string{o.name, o.def, o.doc})
	}
	return out
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error { *field(c) = s; return nil }
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, s string) error {
		on, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		*field(c) = on
		return nil
	}
}

// words splits a list at commas and spaces.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// parseNetwork reads an address or a network.
func parseNetwork(s string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(s)
	if err != nil {
		ip, err := netip.ParseAddr(s)
		if err != nil || ip.Zone() != "" {
			return network, fmt.Errorf("%q is neither an address nor a network, such as 10.0.0.5 or 10.1.0.0/16", s)
		}
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	return network.Masked(), nil
}

// networks reads a list of addresses and networks.
func networks(field func(*Config) *[]netip.Prefix) func(*Config, string) error {
	return func(c *Config, s string) error {
		*field(c) = nil
		for _, word := range words(s) {
			network, err := parseNetwork(word)
			if err != nil {
				return err
			}
			*field(c) = append(*field(c), network)
		}
		return nil
	}
}

func path(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if s == "" {
			return nil
		}
		absolute, err := filepath.Abs(os.ExpandEnv(s))
		*field(c) = absolute
		return err
	}
}

func number(field func(*Config) *int, low, high int) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not a whole number from %d to %d", s, low, high)
		}
		*field(c) = n
		return nil
	}
}

// bytes reads a number of bytes: 0 for no limit, else at least least.
func bytes(field func(*Config) *uint64, least uint64) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil || n > 0 && n < least {
			return fmt.Errorf("%q is not a number of bytes: want 0 for no limit, or at least %d", s, least)
		}
		*field(c) = n
		return nil
	}
}

// atLeast reads a number of seconds that is not smaller than least.
func atLeast(least float64, field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, s string) error {
		if err := seconds(field)(c, s); err != nil {
			return err
		}
		if field(c).Seconds() < least {
			return fmt.Errorf("%q is less than %v seconds", s, least)
		}
		return nil
	}
}

func seconds(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || n < 0 || n > 1e9 {
			return fmt.Errorf("%q is not a number of seconds", s)
		}
		*field(c) = time.Duration(n * float64(time.Second))
		return nil
	}
}

// TLS reports whether the server speaks HTTPS.
func (c *Config) TLS() bool { return c.CertFile != "" || len(c.ACMEDomains) > 0 }
