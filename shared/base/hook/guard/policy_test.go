package guard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
)

func parse(t *testing.T, allow ...string) guard.Policy {
	t.Helper()
	p, err := guard.Policy{}.WithRules(allow...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPublicURLsArePermitted(t *testing.T) {
	t.Parallel()
	for url, address := range map[string]string{
		"https://example.org":                                  "93.184.215.14:443",
		"https://example.org/a/b?token=c&d":                    "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443",
		"HTTPS://Example.ORG:443/":                             "93.184.215.14:443",
		"https://xn--bcher-kva.example/%C3%BC":                 "93.184.215.14:443",
		"https://a-b.1.example/":                               "93.184.215.14:443",
		"https://8.8.8.8/":                                     "8.8.8.8:443",
		"https://[2606:4700:4700::1111]/":                      "[2606:4700:4700::1111]:443",
		"https://127.0.0.1.example.org/":                       "[::ffff:8.8.8.8]:443",
		"https://" + strings.Repeat("a.", 120) + "example.org": "8.8.8.8:443",
	} {
		target, err := guard.Policy{}.Target(url)
		if err != nil {
			t.Errorf("%s: got %v, want it permitted", url, err)
			continue
		}
		if err := (guard.Policy{}).Control(target)("tcp4", address, nil); err != nil {
			t.Errorf("%s at %s: got %v, want it permitted", url, address, err)
		}
	}
}

func TestOperatorPermits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, rule, url, address string
		refused                  bool
	}{
		{"name", "hooks.corp.example", "https://hooks.corp.example/", "10.0.0.1:443", false},
		{"name in upper case", "Hooks.Corp.Example", "https://hooks.CORP.example/", "[fd12::1]:443", false},
		{"name, any port", "hooks.corp.example", "https://hooks.corp.example:8443/", "10.0.0.1:8443", false},
		{"name without a domain", "receiver", "https://receiver/", "172.18.0.3:443", false},
		{"localhost", "localhost", "https://localhost:9/", "127.0.0.1:9", false},
		{"name and port", "hooks.corp.example:8443", "https://hooks.corp.example:8443/", "10.0.0.1:8443", false},
		{"name, another port", "hooks.corp.example:8443", "https://hooks.corp.example/", "10.0.0.1:443", true},
		{"name below", "corp.example", "https://hooks.corp.example/", "10.0.0.1:443", true},
		{"name above", "hooks.corp.example", "https://corp.example/", "10.0.0.1:443", true},
		{"metadata of a permitted name", "hooks.corp.example", "https://hooks.corp.example/", "169.254.169.254:443", true},
		{"EC2's IPv6 metadata of a permitted name", "hooks.corp.example", "https://hooks.corp.example/", "[fd00:ec2::254]:443", true},
		{"NAT64 of a permitted name", "hooks.corp.example", "https://hooks.corp.example/", "[64:ff9b::7f00:1]:443", true},
		{"unspecified address of a permitted name", "localhost", "https://localhost:9/", "0.0.0.0:9", true},
		{"address", "10.1.2.3", "https://10.1.2.3:7/", "10.1.2.3:7", false},
		{"address of a name", "10.1.2.3", "https://hooks.example.org/", "10.1.2.3:443", false},
		{"another address", "10.1.2.3", "https://hooks.example.org/", "10.1.2.4:443", true},
		{"address and port", "10.1.2.3:8443", "https://10.1.2.3:8443/", "10.1.2.3:8443", false},
		{"IPv6 address", "fd00::1", "https://[fd00::1]/", "[fd00::1]:443", false},
		{"IPv6 address in brackets", "[fd00::1]", "https://[fd00::1]/", "[fd00::1]:443", false},
		{"IPv6 address and port", "[fd00::1]:8443", "https://[fd00::1]:8443/", "[fd00::1]:8443", false},
		{"range", "10.0.0.0/8", "https://10.255.0.1/", "10.255.0.1:443", false},
		{"outside of the range", "10.0.0.0/16", "https://hooks.example.org/", "10.1.0.1:443", true},
		{"mapped address of a range", "10.0.0.0/8", "https://hooks.example.org/", "[::ffff:10.0.0.1]:443", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := parse(t, row.rule)
			target, err := p.Target(row.url)
			if err == nil {
				err = p.Control(target)("tcp4", row.address, nil)
				if err != nil && !errors.Is(err, guard.ErrNotPermitted) {
					t.Errorf("got %v, want ErrNotPermitted", err)
				}
			}
			if (err != nil) != row.refused {
				t.Errorf("got %v, want refused %v", err, row.refused)
			}
		})
	}
}

func TestPlainHTTPNeedsLoopbackAndARule(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		url, rule string
		plain     bool
		address   string
		permitted bool
	}{
		{"http://127.0.0.1:8000/", "127.0.0.1", true, "127.0.0.1:8000", true},
		{"http://127.0.0.1/", "127.0.0.0/8", true, "127.0.0.1:80", true},
		{"http://[::1]:8000/", "::1", true, "[::1]:8000", true},
		{"http://localhost:8000/", "localhost", true, "127.0.0.1:8000", true},
		{"http://localhost:8000/", "localhost", true, "10.0.0.1:8000", false},
		{"http://127.0.0.1:8000/", "127.0.0.1", false, "", false},
		{"http://127.0.0.1:8000/", "127.0.0.2", true, "", false},
		{"http://localhost:8000/", "127.0.0.1", true, "", false},
		{"http://10.0.0.1:8000/", "10.0.0.1", true, "", false},
		{"http://hooks.corp.example/", "hooks.corp.example", true, "", false},
	} {
		p := parse(t, row.rule)
		if row.plain {
			p = p.WithPlainLoopback()
		}
		target, err := p.Target(row.url)
		if err == nil {
			err = p.Control(target)("tcp4", row.address, nil)
		}
		if (err == nil) != row.permitted {
			t.Errorf("%s with the rule %s: got %v, want permitted %v", row.url, row.rule, err, row.permitted)
		}
	}
}

func TestPermittedPorts(t *testing.T) {
	t.Parallel()
	p, err := guard.Policy{}.WithPorts("443", "8443")
	if err != nil {
		t.Fatal(err)
	}
	for url, permitted := range map[string]bool{
		"https://example.org/": true, "https://example.org:8443/": true, "https://example.org:8444/": false, "https://10.0.0.1:8443/": false,
	} {
		if err := p.CheckURL(url); (err == nil) != permitted {
			t.Errorf("%s: got %v, want permitted %v", url, err, permitted)
		}
	}
}

func TestEveryProblemOfASettingIsNamed(t *testing.T) {
	t.Parallel()
	rules := []string{
		"", "https://example.org", "example.org/", "example.org:", "example.org:0", "example.org:65536", "10.0.0.1/8", "10.0.0.0/33",
		"::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "fe80::1%eth0", "127.1", "[10.0.0.1]:1", "[::1]1", "*.example.org", "a b",
	}
	ports := []string{"https", "0", "70000", "+443"}
	_, rulesErr := guard.Policy{}.WithRules(rules...)
	_, portsErr := guard.Policy{}.WithPorts(ports...)
	err := errors.Join(rulesErr, portsErr)
	for _, text := range append(rules, ports...) {
		if err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("got %v, want %q named", err, text)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, header, value string
		ok                  bool
	}{
		{"plain", "X-Team", "data platform", true},
		{"authorization", "Authorization", "Bearer abc", true},
		{"empty value", "X-Empty", "", true},
		{"host", "Host", "internal", false},
		{"content length", "Content-Length", "0", false},
		{"content type", "content-type", "text/plain", false},
		{"transfer encoding", "Transfer-Encoding", "chunked", false},
		{"connection", "Connection", "upgrade", false},
		{"our signature", "X-Orchestrator-Signature", "sha256=00", false},
		{"our timestamp, lower case", "x-orchestrator-timestamp", "0", false},
		{"our id", "Webhook-Id", "0", false},
		{"proxy", "Proxy-Authorization", "Basic x", false},
		{"expect", "Expect", "100-continue", false},
		{"forwarded", "X-Forwarded-For", "127.0.0.1", false},
		{"Google metadata", "Metadata-Flavor", "Google", false},
		{"EC2 metadata", "X-aws-ec2-metadata-token-ttl-seconds", "60", false},
		{"Azure metadata", "Metadata", "true", false},
		{"empty name", "", "x", false},
		{"space in the name", "X Team", "x", false},
		{"colon in the name", "X:Team", "x", false},
		{"line end in the value", "X-Team", "s3cret\r\nHost: internal", false},
		{"space at the end", "X-Team", "s3cret ", false},
		{"control character", "X-Team", "s3cret\x01", false},
		{"not ASCII", "X-Team", "s3crét", false},
		{"long", "X-Team", strings.Repeat("s3cret", guard.MaxHeaderBytes), false},
	} {
		problems := guard.CheckHeaders(map[string]string{row.header: row.value})
		if (len(problems) == 0) != row.ok || strings.Contains(fmt.Sprint(problems), "s3cr") {
			t.Errorf("%s: got %v, want ok %v and no value", row.name, problems, row.ok)
		}
	}
	twice := map[string]string{"X-Team": "a", "x-team": "b"}
	if problems := guard.CheckHeaders(twice); problems["x-team"] == "" {
		t.Errorf("header in two spellings: got %v, want a problem", problems)
	}
	many := map[string]string{}
	for i := range guard.MaxHeaders + 1 {
		many["X-"+strings.Repeat("a", i+1)] = "x"
	}
	if problems := guard.CheckHeaders(many); problems[""] == "" {
		t.Errorf("%d headers: got %v, want a problem", len(many), problems)
	}
}

// FuzzCheckURL checks that a permitted URL leads to the host that error messages and connection
// checks use.
func FuzzCheckURL(f *testing.F) {
	for _, row := range porttest.AddressAttacks() {
		f.Add(row.URL)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := guard.Policy{}.Target(text)
		if err != nil {
			return
		}
		encoded := target.URL.String()
		if len(encoded) > guard.MaxURL {
			return // the canonical form of a path can be longer
		}
		again, err := guard.Policy{}.Target(encoded)
		if err != nil || again.Host != target.Host || again.Port != target.Port {
			t.Errorf("%q: got host %s:%d, then %s:%d (%v)", text, target.Host, target.Port, again.Host, again.Port, err)
		}
		if target.Port != guard.DefaultPort || target.Plain() || target.URL.User != nil || strings.ContainsAny(target.Host, "%@/\\ #?") {
			t.Errorf("%q: got target %+v, want a plain host on port %d", text, target, guard.DefaultPort)
		}
	})
}

func TestRefusedLoopbackNamesTheSetting(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://127.0.0.1:9000/": "SORTIE_HOOK_ALLOW=127.0.0.1", "http://localhost:9000/": "SORTIE_HOOK_ALLOW=localhost",
		"http://[::1]:9000/": "SORTIE_HOOK_ALLOW=::1",
	} {
		if err := (guard.Policy{}).WithPlainLoopback().CheckURL(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a refusal with %s", url, err, want)
		}
	}
	for _, policy := range []guard.Policy{{}, guard.Policy{}.WithPlainLoopback()} {
		if err := policy.CheckURL("http://192.0.2.1:9000/"); err == nil || strings.Contains(err.Error(), "SORTIE_HOOK_ALLOW") {
			t.Errorf("got %v for http elsewhere, want a refusal without a setting", err)
		}
	}
}
