package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrNotPermitted is returned by the functions from Control for an address that the policy does
// not permit.
var ErrNotPermitted = errors.New("address that is not public and that the operator does not permit")

// floor refuses the addresses in IANA's special-purpose registries.
var floor = ssrf.New(ssrf.WithAnyPort())

// unlisted are special addresses that IANA does not list: the metadata and DNS server of Azure.
var unlisted = []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}

// Public reports whether the address is reachable from everywhere. Addresses that represent
// another address (IPv4-mapped, NAT64, 6to4, Teredo) are not public.
func Public(addr netip.Addr) bool {
	if addr.Zone() != "" || !addr.Is4() && !ssrf.IPv6GlobalUnicast.Contains(addr) {
		return false
	}
	for _, prefix := range unlisted {
		if prefix.Contains(addr) {
			return false
		}
	}
	return floor.SafeAddr(addr) == nil
}

// namable reports whether a host name that the operator permits may resolve to the address. It
// excludes link-local and special addresses, such as the metadata services of clouds. The
// operator can permit those only by address.
func namable(addr netip.Addr) bool {
	return Public(addr) || addr.IsLoopback() || addr.IsPrivate() && !ec2.Contains(addr)
}

// ec2 is the range of EC2's metadata, DNS and time services.
var ec2 = netip.MustParsePrefix("fd00:ec2::/32")

// Control returns the Control function for a net.Dialer that connects to the target. The dialer
// calls it for each address. It returns ErrNotPermitted if the policy does not permit the
// address.
func (p Policy) Control(t Target) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("network %s: %w", network, ErrNotPermitted)
		}
		dialled, err := netip.ParseAddrPort(address)
		if err != nil || !p.permits(t, dialled) {
			return fmt.Errorf("host %s: %w", t.Host, ErrNotPermitted)
		}
		return nil
	}
}

func (p Policy) permits(t Target, dialled netip.AddrPort) bool {
	addr := dialled.Addr().Unmap()
	switch {
	case dialled.Port() != t.Port || addr.Zone() != "":
		return false
	case t.Plain() && !(p.plain && addr.IsLoopback()):
		return false
	case p.permitsAddr(addr, t.Port) || p.permitsHost(t.Host, t.Port) && namable(addr):
		return true
	}
	return Public(addr) && p.permitsPort(t)
}
