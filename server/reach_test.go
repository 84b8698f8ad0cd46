package server

import (
	"net/netip"
	"testing"

	"ordain.dev/ordain/server/config"
)

// As soon as people log in, the server connects to none of its own addresses for them, but to what the operator allows.
// A developer alone, without login, uses Git servers of the same machine.
func TestWhereTheServerConnectsTo(t *testing.T) {
	here, metadata := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")
	inside, outside := netip.MustParseAddr("10.8.1.2"), netip.MustParseAddr("93.184.216.34")
	for name, c := range map[string]struct {
		options map[string]string
		refused []netip.Addr
	}{
		"without login": {nil, nil},
		"with login":    {map[string]string{"server.auth": "database"}, []netip.Addr{here, metadata}},
		"a Git server on the same machine": {
			map[string]string{"server.auth": "database", "git.allow-networks": "127.0.0.1"}, []netip.Addr{metadata},
		},
		"an internal network": {
			map[string]string{"server.auth": "database", "git.refuse-networks": "guarded, 10.8.0.0/16"},
			[]netip.Addr{here, metadata, inside},
		},
		"anything":            {map[string]string{"server.auth": "database", "git.refuse-networks": "none"}, nil},
		"a network, no login": {map[string]string{"git.refuse-networks": "10.8.1.2"}, []netip.Addr{inside}},
	} {
		options, err := config.Load("", nil, c.options)
		if err != nil {
			t.Fatal(name, err)
		}
		rules := (&Server{cfg: Config{Options: options}}).reachable()
		var refused []netip.Addr
		for _, ip := range []netip.Addr{here, metadata, inside, outside} {
			if rules.Check("host", ip) != nil {
				refused = append(refused, ip)
			}
		}
		if len(refused) != len(c.refused) {
			t.Errorf("%s: %v are refused, want %v", name, refused, c.refused)
		}
	}
	if _, err := config.Load("", nil, map[string]string{"git.refuse-networks": "everything"}); err == nil {
		t.Error("a word that is no network is accepted")
	}
}
