package step

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// The kernel uses ports from 32768 for outgoing connections on Linux, and from 49152 on other
// systems.
const firstPort, endPort = 20_000, 32_768

// FreePort returns a loopback port for a program that is about to start. No program listens on
// the port, and the kernel does not use it for an outgoing connection.
func FreePort(ctx context.Context) (int, error) {
	const attempts = 20
	var last error
	for range attempts {
		port := firstPort + rand.IntN(endPort-firstPort) //nolint:gosec // not a secret
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = listener.Close()
		}
		if err == nil {
			return port, nil
		}
		last = err
	}
	return 0, fmt.Errorf("cannot find a free port: %w", last)
}
