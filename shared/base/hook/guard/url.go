package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// MaxURL is the maximum length of a URL, in bytes.
const MaxURL = 2048

// Target is a URL that a policy permits. Its host may still resolve to addresses that the
// policy does not permit.
type Target struct {
	URL *url.URL
	// Host is the host name or address, without brackets.
	Host string
	Port uint16
}

// Plain reports whether the scheme of the URL is http.
func (t Target) Plain() bool { return t.URL.Scheme == "http" }

// CheckURL returns an error if the policy does not permit the URL. The error says what is
// valid. It contains only the scheme, host and port of the URL, because paths and queries may
// contain secrets.
func (p Policy) CheckURL(text string) error {
	_, err := p.Target(text)
	return err
}

// Target returns the target of a URL; see CheckURL.
func (p Policy) Target(text string) (Target, error) {
	u, err := parse(text)
	if err != nil {
		return Target{}, err
	}
	t := Target{URL: u, Host: strings.ToLower(u.Hostname()), Port: DefaultPort}
	if t.Plain() {
		t.Port = 80
	}
	if u.Port() != "" {
		if t.Port, err = parsePort(u.Port()); err != nil {
			return Target{}, err
		}
	}
	addr, err := netip.ParseAddr(t.Host)
	if err != nil {
		return t, p.checkHost(t)
	}
	if addr.Zone() != "" || addr.Is4In6() || addr.Is6() != strings.HasPrefix(u.Host, "[") {
		return Target{}, fmt.Errorf("host %q: want an address without a zone, IPv4 as four decimal numbers, and only IPv6 in brackets", u.Host)
	}
	return t, p.checkAddress(t, addr)
}

// parse returns a URL that has only a scheme and a host before its path.
func parse(text string) (*url.URL, error) {
	const want = "want https://HOST/PATH"
	switch {
	case text == "":
		return nil, errors.New("missing URL, " + want)
	case len(text) > MaxURL:
		return nil, fmt.Errorf("URL of %d bytes, want at most %d", len(text), MaxURL)
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }):
		return nil, errors.New("URL with a space or another character than printable ASCII, want https://HOST/PATH with other characters encoded (xn--... in a host, %XX in a path)")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("malformed URL, " + want) // err contains the URL
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("scheme %q, %s", u.Scheme, want)
	case u.User != nil:
		return nil, errors.New("user information before the host, want a secretRef or a header")
	case u.Host == "" || u.Opaque != "" || strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("malformed or missing host, " + want)
	case strings.Contains(text, "#"):
		return nil, errors.New("fragment at the end of the URL, want a URL without #")
	}
	return u, nil
}

// privateNames are host names, and last labels of host names, that are never public.
var privateNames = []string{"localhost", "local", "internal"}

func (p Policy) checkHost(t Target) error {
	if err := checkName(t.Host); err != nil {
		return fmt.Errorf("host %q: %w", t.Host, err)
	}
	listed := p.permitsHost(t.Host, t.Port)
	if t.Plain() && !(listed && p.plain && t.Host == "localhost") {
		return p.plainRefusal(t, t.Host == "localhost")
	}
	if listed {
		return nil
	}
	labels := strings.Split(t.Host, ".")
	if slices.Contains(privateNames, labels[len(labels)-1]) {
		return fmt.Errorf("host %q is not public, want a public host, or one that the operator permits", t.Host)
	}
	if len(labels) == 1 {
		return fmt.Errorf("host %q is a name without a domain, want a full name, or one that the operator permits", t.Host)
	}
	return p.checkPort(t)
}

func (p Policy) checkAddress(t Target, addr netip.Addr) error {
	listed := p.permitsAddr(addr, t.Port)
	switch {
	case t.Plain() && !(listed && p.plain && addr.IsLoopback()):
		return p.plainRefusal(t, addr.IsLoopback())
	case listed:
		return nil
	case !Public(addr):
		return fmt.Errorf("address %s is not public, want a public host, or one that the operator permits", addr)
	}
	return p.checkPort(t)
}

// plainRefusal returns the error for http. It names the setting if a rule would permit the
// host.
func (p Policy) plainRefusal(t Target, loopback bool) error {
	if p.plain && loopback {
		return fmt.Errorf(`scheme "http", want https; the operator can permit http to this host with SORTIE_HOOK_ALLOW=%s`, t.Host)
	}
	return errors.New(`scheme "http", want https`)
}

func (p Policy) checkPort(t Target) error {
	if !p.permitsPort(t) {
		return fmt.Errorf("port %d, want one of %s, or a host that the operator permits", t.Port, p.portList(t))
	}
	return nil
}

var (
	label = limit.DNSLabel()
	// number matches a label that some resolvers read as an IPv4 address or a part of one.
	number = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// checkName returns an error if the text is not a valid host name.
func checkName(host string) error {
	const longest = 253
	labels := strings.Split(strings.ToLower(host), ".")
	switch {
	case strings.HasSuffix(host, "."):
		return errors.New("name with a dot at its end, want one without")
	case number.MatchString(labels[len(labels)-1]):
		return errors.New("malformed address, want four decimal numbers from 0 to 255")
	case len(host) > longest:
		return fmt.Errorf("name of %d bytes, want at most %d", len(host), longest)
	}
	for _, l := range labels {
		if !label.Matches(l) {
			return errors.New("malformed name, want letters, digits and hyphens with dots between them")
		}
	}
	return nil
}
