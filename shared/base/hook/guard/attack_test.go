package guard_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
)

// TestAttacks checks every attack against a policy without rules, and against a policy with
// rules for other hosts (RL-4.16).
func TestAttacks(t *testing.T) {
	t.Parallel()
	other := parse(t, "hooks.corp.example", "10.9.9.9", "10.8.0.0/16", "[fd00::9]:8443")
	for _, policy := range []guard.Policy{{}, other.WithPlainLoopback()} {
		for _, row := range porttest.AddressAttacks() {
			target, err := policy.Target(row.URL)
			if row.Address == "" {
				if err == nil {
					t.Errorf("%s: got %q permitted, want an error", row.Name, row.URL)
				} else if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "ssss") {
					t.Errorf("%s: got a part of the URL that may be secret in %q", row.Name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: got %v, want the name permitted until it is resolved", row.Name, err)
				continue
			}
			for _, network := range []string{"tcp4", "tcp6"} {
				if err := policy.Control(target)(network, row.Address, nil); !errors.Is(err, guard.ErrNotPermitted) {
					t.Errorf("%s: got %v for %s, want ErrNotPermitted", row.Name, err, row.Address)
				}
			}
		}
	}
	if len(porttest.AddressAttacks()) < 60 {
		t.Errorf("got %d attacks, want at least 60", len(porttest.AddressAttacks()))
	}
}

// TestPublicAddresses checks the boundaries of the special ranges.
func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, public := range []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2001:200::", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "2a00::1", "3ffe:ffff::1",
	} {
		if !guard.Public(netip.MustParseAddr(public)) {
			t.Errorf("got %s refused, want it public", public)
		}
	}
	for _, special := range []string{
		"0.255.255.255", "10.255.255.255", "100.64.0.0", "127.0.0.0", "172.16.0.0", "192.0.0.0", "192.31.196.1", "198.18.0.0", "224.0.0.0", "239.255.255.255",
		"1fff:ffff::", "4000::", "2001:1ff:ffff::", "2002:ffff::", "3fff:fff::", "ff0e::1", "::8.8.8.8", "::ffff:8.8.8.8",
	} {
		if guard.Public(netip.MustParseAddr(special)) {
			t.Errorf("got %s public, want it refused", special)
		}
	}
	if guard.Public(netip.Addr{}) {
		t.Error("got no address public, want it refused")
	}
}
