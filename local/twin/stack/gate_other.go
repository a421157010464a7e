//go:build !linux

package stack

import "net"

// gateListen returns the default configuration. The engine is in a virtual machine, so gates
// listen on loopback.
func gateListen() net.ListenConfig { return net.ListenConfig{} }
