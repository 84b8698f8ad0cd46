package pyregex

import (
	"testing"
	"time"
)

// usual are patterns as models have them.
var usual = []struct{ name, pattern, text string }{
	{"name", "^[a-z0-9_-]+$", "some-host-name_0042"},
	{"refused", "^[a-z0-9_-]+$", "some-host-name.0042"},
	{
		"address",
		`^(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$`,
		"192.168.101.254",
	},
	{
		"host",
		`^(?=.{1,253}$)(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$`,
		"www.some-host.example.com",
	},
	{"words", `(?i)^(?:true|false|yes|no|on|off)$`, "off"},
	{
		"version",
		`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-` +
			`((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$`,
		"10.20.30-rc.1",
	},
	{"accents", `^\w+([ -]\w+)*$`, "Zoë Müller-Ångström"},
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range usual {
		r := compiled(b, c.pattern)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.Match(c.text, time.Second)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, c := range usual {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compiled(b, c.pattern)
			}
		})
	}
}
