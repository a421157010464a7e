package guard_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
)

// TestMailAttacks checks the hosts of all attacks as those of mail servers.
func TestMailAttacks(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, row := range porttest.AddressAttacks() {
		u, err := url.Parse(row.URL)
		if err != nil || u.Hostname() == "" || strings.Contains(strings.TrimSuffix(u.Host, "]"), ":") && !strings.HasSuffix(u.Host, "]") || u.User != nil || u.Scheme != "https" {
			continue // what is wrong is not the host
		}
		target, err := guard.Policy{}.MailTarget(u.Hostname(), 587)
		if row.Address == "" {
			if err == nil && row.URL == "https://"+u.Host+"/" {
				t.Errorf("%s: got the mail server %q permitted, want an error", row.Name, u.Hostname())
			}
			checked++
			continue
		}
		checked++
		if err != nil {
			continue
		}
		host, port, err := net.SplitHostPort(row.Address)
		if err == nil && port == "443" {
			port = "587"
		}
		if err := (guard.Policy{}).Control(target)("tcp4", net.JoinHostPort(host, port), nil); !errors.Is(err, guard.ErrNotPermitted) {
			t.Errorf("%s: got %v for %s, want ErrNotPermitted", row.Name, err, row.Address)
		}
	}
	if checked < 40 {
		t.Errorf("got %d attacks, want at least 40", checked)
	}
}

func TestMailServers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		host      string
		port      int
		rule      string
		permitted bool
	}{
		{"smtp.example.org", 587, "", true},
		{"SMTP.example.org", 465, "", true},
		{"8.8.8.8", 587, "", true},
		{"smtp.example.org", 25, "", false},
		{"smtp.example.org", 443, "", false},
		{"smtp.example.org", 0, "", false},
		{"smtp.example.org", 65536, "", false},
		{"smtp.example.org", 2525, "smtp.example.org:2525", true},
		{"smtp", 587, "", false},
		{"localhost", 587, "", false},
		{"localhost", 2525, "localhost", true},
		{"127.0.0.1", 587, "", false},
		{"127.0.0.1", 2525, "127.0.0.1", true},
		{"::1", 587, "", false},
		{"::ffff:10.0.0.1", 587, "10.0.0.0/8", false},
		{"fe80::1%eth0", 587, "", false},
		{"smtp.example.org/path", 587, "", false},
		{"user@smtp.example.org", 587, "", false},
		{"", 587, "", false},
	} {
		p := guard.Policy{}
		if row.rule != "" {
			p = parse(t, row.rule)
		}
		if err := p.CheckAddress(guard.MailAddress(row.host, row.port)); (err == nil) != row.permitted {
			t.Errorf("%s at %d: got %v, want permitted %v", row.host, row.port, err, row.permitted)
		}
	}
	if err := (guard.Policy{}).CheckURL("smtp://smtp.example.org:587"); err == nil {
		t.Error("got the address of a mail server permitted as a URL, want an error")
	}
}
