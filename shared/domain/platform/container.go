package platform

import (
	"path"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// ContainerSettings are the settings of RunnerContainer. Empty strings mean those of the
// deployment.
type ContainerSettings struct {
	// Socket is the absolute path of the engine's socket. The deployment must allow it.
	Socket string `json:"socket,omitempty"`
	// Network is the name of the engine's network that the containers join.
	Network string `json:"network,omitempty"`
}

var networkName = limit.Form{First: limit.Letters + limit.Digits, Rest: limit.Letters + limit.Digits + "_.-", Most: 128}

func (s *ContainerSettings) check(o RunnerOffer) []*fault.Fault {
	var network, socket *fault.Fault
	if s.Network != "" && !networkName.Matches(s.Network) {
		network = fault.Invalid("settings.network", "malformed network %q, want 1 to 128 letters, digits, '_', '.' and '-'", limit.Cut(s.Network, limit.FileName))
	}
	switch {
	case s.Socket == "":
	case !path.IsAbs(s.Socket) || path.Clean(s.Socket) != s.Socket || !limit.Printable(s.Socket):
		socket = fault.Invalid("settings.socket", "malformed socket %q, want an absolute path", limit.Cut(s.Socket, limit.FileName))
	default:
		socket = offered("settings.socket", "socket", s.Socket, o.Sockets)
	}
	return []*fault.Fault{socket, network}
}
