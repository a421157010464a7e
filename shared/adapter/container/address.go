package container

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Addresses are the addresses at which an engine may listen.
type Addresses struct {
	// Tried are addresses such as "unix:///var/run/docker.sock", the most preferred first.
	Tried []string
	// Variable is the environment variable with the address; empty if no variable has one.
	Variable string
	// Certificates is the folder with ca.pem, cert.pem and key.pem for an address of tcp; empty
	// means no TLS.
	Certificates string
}

// The environment variables of Docker and Podman.
const (
	dockerHost    = "DOCKER_HOST"
	podmanHost    = "CONTAINER_HOST"
	certificates  = "DOCKER_CERT_PATH"
	verify        = "DOCKER_TLS_VERIFY"
	runtimeFolder = "XDG_RUNTIME_DIR"
)

// FindAddresses returns the address in DOCKER_HOST. Without it, it returns the one in
// CONTAINER_HOST, and otherwise the usual sockets of Docker and Podman.
func FindAddresses(lookup func(string) (string, bool)) (Addresses, error) {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	for _, name := range []string{dockerHost, podmanHost} {
		address := get(name)
		if address == "" {
			continue
		}
		if filepath.IsAbs(address) {
			address = "unix://" + address
		}
		kind, rest, ok := strings.Cut(address, "://")
		if !ok || rest == "" || kind != "unix" && kind != "tcp" && kind != "http" && kind != "https" && kind != "npipe" {
			return Addresses{}, fmt.Errorf("%s: malformed address %q of a container engine, want unix:///PATH or tcp://HOST:PORT", name, address)
		}
		found := Addresses{Tried: []string{address}, Variable: name}
		if get(verify) != "" || get(certificates) != "" {
			found.Certificates = get(certificates)
			if found.Certificates == "" {
				found.Certificates = filepath.Join(get("HOME"), ".docker")
			}
		}
		return found, nil
	}
	return Addresses{Tried: usual(get(runtimeFolder), get("HOME"))}, nil
}

// usual returns the sockets of Docker, Podman and their machines: those of the system, then
// those of the user.
func usual(runtime, home string) []string {
	paths := []string{"/var/run/docker.sock"}
	if runtime != "" {
		paths = append(paths, filepath.Join(runtime, "docker.sock"))
	}
	if home != "" {
		for _, under := range []string{".docker/run/docker.sock", ".docker/desktop/docker.sock", ".orbstack/run/docker.sock", ".colima/default/docker.sock"} {
			paths = append(paths, filepath.Join(home, under))
		}
	}
	paths = append(paths, "/run/podman/podman.sock")
	if runtime != "" {
		paths = append(paths, filepath.Join(runtime, "podman/podman.sock"))
	}
	if home != "" {
		paths = append(paths, filepath.Join(home, ".local/share/containers/podman/machine/podman.sock"))
	}
	for i, path := range paths {
		paths[i] = "unix://" + path
	}
	return paths
}
