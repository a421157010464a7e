package stack

import (
	"context"
	"fmt"
	"net"
)

// The loopback addresses, in the order in which they are tried.
const loopback4, loopback6 = "127.0.0.1", "::1"

// checkListen listens on addr and closes the listener, so that a wrong address is reported
// before a data folder is created. It returns the loopback address for the other parts. It is
// of the same family as addr, because the host may not have the other.
func checkListen(ctx context.Context, addr string) (loopback string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	bound := listener.Addr()
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	order := []string{loopback4, loopback6}
	if tcp, ok := bound.(*net.TCPAddr); ok && tcp.IP.To4() == nil && !tcp.IP.IsUnspecified() {
		order = []string{loopback6, loopback4}
	}
	for _, each := range order {
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(each, "0")); err == nil {
			return each, listener.Close()
		}
	}
	return "", fmt.Errorf("cannot listen on loopback: %w", err)
}

// reachable returns an address that programs on this host can call.
func (s *Stack) reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort(s.loopback, fmt.Sprint(tcp.Port))
}

// freePort returns a free port of the loopback address. Another program can take it before the
// replica listens; that replica then ends, and the next one gets another port.
func (s *Stack) freePort() (int, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(s.loopback)})
	if err != nil {
		return 0, fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // of a TCP listener
}

func sameHost(a, b string) bool {
	ipA, ipB := net.ParseIP(a), net.ParseIP(b)
	return a == b || ipA != nil && ipA.Equal(ipB) || b == "localhost" && ipA != nil && ipA.IsLoopback()
}
