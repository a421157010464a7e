package guard

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// mailScheme is the scheme of the targets of mail servers.
const mailScheme = "smtp"

// ImplicitTLS is the port of mail servers that expect TLS from the first byte (RFC 8314). Other
// ports use STARTTLS.
const ImplicitTLS = 465

// mailPorts are the ports of mail submission that are permitted for public addresses.
var mailPorts = []uint16{587, ImplicitTLS}

// MailAddress returns the address of a mail server for CheckAddress.
func MailAddress(host string, port int) string {
	return mailScheme + "://" + hostPort(host, port)
}

// hostPort joins a host and a port. An IPv6 address gets brackets.
func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// CheckAddress is CheckURL, and for an address of MailAddress an error if the policy does not
// permit that mail server.
func (p Policy) CheckAddress(text string) error {
	rest, mail := strings.CutPrefix(text, mailScheme+"://")
	if !mail {
		return p.CheckURL(text)
	}
	colon := strings.LastIndexByte(rest, ':')
	port, err := strconv.Atoi(rest[colon+1:])
	if err != nil || colon < 0 {
		return fmt.Errorf("malformed port of a mail server, want 1 to 65535")
	}
	_, err = p.MailTarget(strings.TrimSuffix(strings.TrimPrefix(rest[:colon], "["), "]"), port)
	return err
}

// MailTarget returns the target of a mail server. The policy permits it as it permits the host of
// a URL, but with the ports of mail submission instead of those of HTTPS.
func (p Policy) MailTarget(host string, port int) (Target, error) {
	if port < 1 || port > 65535 {
		return Target{}, fmt.Errorf("port %d, want 1 to 65535", port)
	}
	t := Target{URL: &url.URL{Scheme: mailScheme, Host: hostPort(host, port)}, Host: strings.ToLower(host), Port: uint16(port)} //nolint:gosec // it is in the range
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return t, p.checkHost(t)
	}
	if addr.Zone() != "" || addr.Is4In6() {
		return Target{}, fmt.Errorf("host %q: want an address without a zone, and IPv4 as four decimal numbers", host)
	}
	return t, p.checkAddress(t, addr)
}

// mail reports whether the target is a mail server.
func (t Target) mail() bool { return t.URL.Scheme == mailScheme }

// publicPorts returns the ports that are permitted for the public addresses of a target.
func (p Policy) publicPorts(t Target) []uint16 {
	switch {
	case t.mail():
		return mailPorts
	case len(p.ports) == 0:
		return []uint16{DefaultPort}
	}
	return p.ports
}

// permitsPort reports whether the port of the target is permitted for public addresses.
func (p Policy) permitsPort(t Target) bool { return slices.Contains(p.publicPorts(t), t.Port) }

// portList returns the ports that are permitted for public addresses of the target, as text.
func (p Policy) portList(t Target) string {
	var list []string
	for _, port := range p.publicPorts(t) {
		list = append(list, strconv.Itoa(int(port)))
	}
	return strings.Join(list, ", ")
}
