package stack

import (
	"net"
	"syscall"
)

// gateListen permits listening on the address of a network that does not exist yet. The engine
// creates it with its first container.
func gateListen() net.ListenConfig {
	return net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var failed error
		err := conn.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_FREEBIND, 1)
		})
		if err != nil {
			return err
		}
		return failed
	}}
}
