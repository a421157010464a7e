// Package guard decides which addresses a request to a user-supplied URL may reach, so that
// users cannot make Sortie call services in its own network.
//
// CheckURL refuses a malformed URL, and a URL whose host is a literal address that is not
// public. A host name is resolved when it is dialed. Control then checks each address, so a
// name whose addresses change between two look-ups gains nothing.
//
// Public addresses are IPv4 and 2000::/3 without IANA's special-purpose registries. An operator
// permits other hosts, addresses, ranges and ports individually.
package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// DefaultPort is the port of HTTPS.
const DefaultPort = 443

// Policy is the set of addresses that the operator permits. The zero Policy permits public
// addresses at DefaultPort. It is safe for concurrent use.
type Policy struct {
	rules []rule
	ports []uint16
	plain bool
}

// rule permits a host, or the addresses in a range.
type rule struct {
	host   string
	prefix netip.Prefix
	// port is the permitted port; 0 means every port.
	port uint16
}

// WithRules returns a policy that also permits hosts, addresses and ranges that are not public
// ("hooks.corp.example", "10.1.2.3:8443", "[fd00::1]:8443", "10.0.0.0/8"). A rule without a
// port permits every port. A name does not permit link-local addresses, which need a rule of
// their own. The error joins all problems.
func (p Policy) WithRules(texts ...string) (Policy, error) {
	var problems []error
	p.rules = slices.Clone(p.rules)
	for _, text := range texts {
		r, err := parseRule(text)
		if err != nil {
			problems = append(problems, err)
		}
		p.rules = append(p.rules, r)
	}
	return p, errors.Join(problems...)
}

// WithPorts returns a policy that permits these ports for public addresses, instead of
// DefaultPort. The error joins all problems.
func (p Policy) WithPorts(texts ...string) (Policy, error) {
	var problems []error
	p.ports = nil
	for _, text := range texts {
		port, err := parsePort(text)
		if err != nil {
			problems = append(problems, err)
		}
		p.ports = append(p.ports, port)
	}
	return p, errors.Join(problems...)
}

// WithPlainLoopback returns a policy that also permits http to loopback addresses that a rule
// permits.
func (p Policy) WithPlainLoopback() Policy {
	p.plain = true
	return p
}

func parseRule(text string) (rule, error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		if prefix != prefix.Masked() || prefix.Addr().Is4In6() {
			return rule{}, fmt.Errorf("malformed range %q, want its first address and length, such as %s", text, prefix.Masked())
		}
		return rule{prefix: prefix}, nil
	}
	host, port, err := splitHost(text)
	if err != nil {
		return rule{}, fmt.Errorf("%q: %w", text, err)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Is4In6() || addr.Zone() != "" {
			return rule{}, fmt.Errorf("malformed address %q, want one without a zone, and IPv4 as four decimal numbers", text)
		}
		return rule{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port}, nil
	}
	if err := checkName(host); err != nil {
		return rule{}, fmt.Errorf("%q: %w", text, err)
	}
	return rule{host: strings.ToLower(host), port: port}, nil
}

// splitHost splits a host and an optional port: HOST, HOST:PORT, an IPv6 address, or an IPv6
// address in brackets with an optional port. The port is 0 if it is missing.
func splitHost(text string) (host string, port uint16, err error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		return text, 0, nil
	}
	if inside, found := strings.CutPrefix(text, "["); found {
		host, rest, _ := strings.Cut(inside, "]")
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() {
			return "", 0, errors.New("malformed address in brackets, want IPv6")
		}
		text = rest
		if text == "" {
			return host, 0, nil
		}
		text, found = strings.CutPrefix(text, ":")
		if !found {
			return "", 0, errors.New("malformed text after the brackets, want :PORT")
		}
		port, err = parsePort(text)
		return host, port, err
	}
	host, text, found := strings.Cut(text, ":")
	if found {
		port, err = parsePort(text)
	}
	return host, port, err
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != text {
		return 0, fmt.Errorf("malformed port %q, want 1 to 65535", text)
	}
	return uint16(port), nil
}

// permitsHost reports whether a rule permits the host by its name.
func (p Policy) permitsHost(host string, port uint16) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.host != "" && strings.EqualFold(r.host, host) && (r.port == 0 || r.port == port)
	})
}

// permitsAddr reports whether a rule permits the address.
func (p Policy) permitsAddr(addr netip.Addr, port uint16) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.prefix.IsValid() && r.prefix.Contains(addr) && (r.port == 0 || r.port == port)
	})
}
