package guard_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/hook/guard"
)

// attacks are URLs that reach what is not public, or that two parsers may read in two
// ways. CheckURL refuses those without addresses; the others have a name that resolves
// to the address, which the connection refuses.
var attacks = []struct{ name, url, address string }{
	{"loopback", "https://127.0.0.1/", ""},
	{"loopback, another one", "https://127.255.255.254/", ""},
	{"IPv6 loopback", "https://[::1]/", ""},
	{"IPv6 loopback, long", "https://[0:0:0:0:0:0:0:1]/", ""},
	{"unspecified", "https://0.0.0.0/", ""},
	{"this network", "https://0.1.2.3/", ""},
	{"IPv6 unspecified", "https://[::]/", ""},
	{"private 10/8", "https://10.0.0.1/", ""},
	{"private 172.16/12", "https://172.31.255.255/", ""},
	{"private 192.168/16", "https://192.168.1.1/", ""},
	{"carrier-grade NAT", "https://100.64.0.1/", ""},
	{"carrier-grade NAT, end", "https://100.127.255.255/", ""},
	{"link-local", "https://169.254.0.1/", ""},
	{"IPv6 link-local", "https://[fe80::1]/", ""},
	{"IPv6 site-local", "https://[fec0::1]/", ""},
	{"unique local", "https://[fd12:3456::1]/", ""},
	{"multicast", "https://224.0.0.1/", ""},
	{"IPv6 multicast", "https://[ff02::1]/", ""},
	{"broadcast", "https://255.255.255.255/", ""},
	{"reserved", "https://240.0.0.1/", ""},
	{"benchmarks", "https://198.19.255.255/", ""},
	{"protocol assignments", "https://192.0.0.170/", ""},
	{"documentation 1", "https://192.0.2.1/", ""},
	{"documentation 2", "https://198.51.100.1/", ""},
	{"documentation 3", "https://203.0.113.1/", ""},
	{"6to4 relays", "https://192.88.99.1/", ""},
	{"AS112", "https://192.175.48.1/", ""},
	{"AMT", "https://192.52.193.1/", ""},
	{"IPv6 documentation", "https://[2001:db8::1]/", ""},
	{"IPv6 documentation 2", "https://[3fff::1]/", ""},
	{"IPv6 discard", "https://[100::1]/", ""},
	{"segment routing", "https://[5f00::1]/", ""},
	{"ORCHID", "https://[2001:20::1]/", ""},
	{"IPv6 AS112", "https://[2620:4f:8000::1]/", ""},
	{"unassigned IPv6", "https://[4000::1]/", ""},

	{"IPv4-mapped", "https://[::ffff:127.0.0.1]/", ""},
	{"IPv4-mapped, hexadecimal", "https://[::ffff:7f00:1]/", ""},
	{"IPv4-mapped public", "https://[::ffff:8.8.8.8]/", ""},
	{"IPv4-compatible", "https://[::127.0.0.1]/", ""},
	{"NAT64", "https://[64:ff9b::7f00:1]/", ""},
	{"NAT64 of metadata", "https://[64:ff9b::169.254.169.254]/", ""},
	{"local NAT64", "https://[64:ff9b:1::a00:1]/", ""},
	{"6to4", "https://[2002:7f00:1::]/", ""},
	{"6to4 of metadata", "https://[2002:a9fe:a9fe::1]/", ""},
	{"Teredo", "https://[2001:0:5ef5:79fb::1]/", ""},
	{"zone", "https://[fe80::1%25eth0]/", ""},
	{"zone of a public address", "https://[2606:4700::1111%25lo]/", ""},

	{"EC2 metadata", "https://169.254.169.254/latest/meta-data/", ""},
	{"EC2 metadata, IPv6", "https://[fd00:ec2::254]/latest/meta-data/", ""},
	{"ECS credentials", "https://169.254.170.2/v2/credentials", ""},
	{"EKS credentials", "https://169.254.170.23/v1/credentials", ""},
	{"Azure metadata", "https://168.63.129.16/machine", ""},
	{"Alibaba metadata", "https://100.100.100.200/latest/meta-data/", ""},
	{"Oracle metadata", "https://192.0.0.192/latest/", ""},
	{"Google metadata by name", "https://metadata.google.internal/computeMetadata/v1/", ""},
	{"Lambda runtime API", "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next", ""},
	{"Lambda runtime API with TLS", "https://127.0.0.1:9001/", ""},
	{"Lambda's host address", "http://169.254.100.1:9001/", ""},

	{"localhost", "https://localhost/", ""},
	{"localhost, upper case", "https://LOCALHOST/", ""},
	{"localhost with a dot", "https://localhost./", ""},
	{"name below localhost", "https://a.localhost/", ""},
	{"mDNS name", "https://printer.local/", ""},
	{"name without a domain", "https://kubernetes/", ""},
	{"decimal address", "https://2130706433/", ""},
	{"octal address", "https://017700000001/", ""},
	{"hexadecimal address", "https://0x7f000001/", ""},
	{"octal parts", "https://0177.0.0.1/", ""},
	{"hexadecimal parts", "https://0x7f.0x0.0x0.0x1/", ""},
	{"mixed parts", "https://127.0.0.0x1/", ""},
	{"two parts", "https://127.1/", ""},
	{"three parts", "https://127.0.1/", ""},
	{"leading zeros", "https://127.000.000.001/", ""},
	{"five parts", "https://127.0.0.1.1/", ""},
	{"part above 255", "https://127.0.0.256/", ""},
	{"address with a dot", "https://127.0.0.1./", ""},
	{"public address with a dot", "https://8.8.8.8./", ""},
	{"name with a dot", "https://hooks.example.org./", ""},
	{"IPv4 in brackets", "https://[127.0.0.1]/", ""},
	{"name in brackets", "https://[hooks.example.org]/", ""},
	{"full-width digits", "https://１２７.０.０.１/", ""},
	{"circled letters", "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", ""},
	{"ideographic dots", "https://127。0。0。1/", ""},
	{"encoded host", "https://%31%32%37.0.0.1/", ""},
	{"encoded unicode host", "https://%E2%93%9Bocalhost/", ""},
	{"soft hyphen", "https://local\u00adhost.example.org/", ""},

	{"user information", "https://user:s3cret@hooks.example.org/", ""},
	{"host as user information", "https://hooks.example.org@127.0.0.1/", ""},
	{"host as a password", "https://hooks.example.org:443@10.0.0.1/", ""},
	{"backslash", `https://127.0.0.1\@hooks.example.org/`, ""},
	{"backslashes for slashes", `https:\\127.0.0.1/`, ""},
	{"fragment before user information", "https://hooks.example.org#@127.0.0.1/", ""},
	{"fragment", "https://hooks.example.org/#s3cret", ""},
	{"space before", " https://hooks.example.org/", ""},
	{"tab in the host", "https://hooks\t.example.org/", ""},
	{"line end", "https://hooks.example.org/\r\nHost: internal", ""},
	{"NUL", "https://hooks.example.org\x00.evil.example/", ""},

	{"plain HTTP", "http://hooks.example.org/", ""},
	{"FTP", "ftp://hooks.example.org/", ""},
	{"file", "file:///etc/passwd", ""},
	{"Gopher", "gopher://127.0.0.1:6379/_INFO", ""},
	{"no scheme", "//hooks.example.org/", ""},
	{"no host", "https:///path", ""},
	{"opaque", "https:hooks.example.org", ""},
	{"data", "data:text/plain,s3cret", ""},
	{"empty", "", ""},
	{"long", "https://hooks.example.org/" + strings.Repeat("s", guard.MaxURL), ""},

	{"SSH", "https://hooks.example.org:22/", ""},
	{"Redis", "https://8.8.8.8:6379/", ""},
	{"HTTP port with TLS", "https://hooks.example.org:80/", ""},
	{"port 0", "https://hooks.example.org:0/", ""},
	{"port above 65535", "https://hooks.example.org:65979/", ""},
	{"port with zeros", "https://hooks.example.org:0443/", ""},
	{"empty port", "https://hooks.example.org:/", ""},
	{"negative port", "https://hooks.example.org:-443/", ""},

	{"name of loopback", "https://hooks.example.org/", "127.0.0.1:443"},
	{"name of IPv6 loopback", "https://hooks.example.org/", "[::1]:443"},
	{"name of a mapped address", "https://hooks.example.org/", "[::ffff:10.0.0.1]:443"},
	{"name of a private address", "https://hooks.example.org/", "10.0.0.1:443"},
	{"name of a unique local address", "https://hooks.example.org/", "[fdaa::3]:443"},
	{"name of a link-local address", "https://hooks.example.org/", "[fe80::1%eth0]:443"},
	{"name of EC2's metadata", "https://hooks.example.org/", "169.254.169.254:443"},
	{"name of EC2's metadata, IPv6", "https://hooks.example.org/", "[fd00:ec2::254]:443"},
	{"name of Azure's metadata", "https://hooks.example.org/", "168.63.129.16:443"},
	{"name of a NAT64 address", "https://hooks.example.org/", "[64:ff9b::a9fe:a9fe]:443"},
	{"name of a 6to4 address", "https://hooks.example.org/", "[2002:a00:1::]:443"},
	{"name of a Teredo address", "https://hooks.example.org/", "[2001::1]:443"},
	{"name of a zoned address", "https://hooks.example.org/", "[2606:4700::1111%lo]:443"},
	{"nip.io", "https://127.0.0.1.nip.io/", "127.0.0.1:443"},
	{"another port", "https://hooks.example.org/", "8.8.8.8:22"},
	{"not an address", "https://hooks.example.org/", "hooks.example.org:443"},
}

// TestAttacks checks every attack against the policy without rules and against one
// whose rules concern other hosts (RL-4.16).
func TestAttacks(t *testing.T) {
	t.Parallel()
	other := parse(t, "hooks.corp.example", "10.9.9.9", "10.8.0.0/16", "[fd00::9]:8443")
	for _, policy := range []guard.Policy{{}, other.WithPlainLoopback()} {
		for _, row := range attacks {
			target, err := policy.Target(row.url)
			if row.address == "" {
				if err == nil {
					t.Errorf("%s: got %q permitted, want an error", row.name, row.url)
				} else if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "ssss") {
					t.Errorf("%s: got a part of the URL that may be secret in %q", row.name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: got %v, want the name permitted until it is resolved", row.name, err)
				continue
			}
			for _, network := range []string{"tcp4", "tcp6"} {
				if err := policy.Control(target)(network, row.address, nil); !errors.Is(err, guard.ErrNotPermitted) {
					t.Errorf("%s: got %v for %s, want ErrNotPermitted", row.name, err, row.address)
				}
			}
		}
	}
	if len(attacks) < 60 {
		t.Errorf("got %d attacks, want at least 60", len(attacks))
	}
}

// TestPublicAddresses checks the borders of the special ranges.
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
