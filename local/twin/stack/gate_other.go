//go:build !linux

package stack

import "net"

// gateListen listens on loopback: the engine is in a virtual machine.
func gateListen() net.ListenConfig { return net.ListenConfig{} }
