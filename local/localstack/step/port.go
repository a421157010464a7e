package step

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// The kernel gives outgoing connections ports from 32768 on Linux, from 49152 elsewhere.
const firstPort, endPort = 20_000, 32_768

// FreePort returns a port of loopback for a program that is started next. No program listens
// on it, and the kernel does not give it to a connection before the program does.
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
