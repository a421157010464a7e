//go:build linux

// Runc changes the configuration of a new container and then runs the real runc. The container
// uses the host's network and sees the folder SORTIE_SHARED.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// runc is the path of the real runc in the mount namespace of the node.
const runc = "/usr/sbin/runc"

func main() {
	err := change(os.Args[1:], os.Getenv("SORTIE_SHARED"))
	if err == nil {
		err = syscall.Exec(runc, append([]string{"runc"}, os.Args[1:]...), os.Environ()) //nolint:gosec // G204: a constant program
	}
	fmt.Fprintln(os.Stderr, "cannot run runc:", err)
	os.Exit(1)
}

// change changes the configuration of the container if the arguments create one.
func change(args []string, shared string) error {
	at := slices.Index(args, "--bundle")
	if !slices.Contains(args, "create") || at < 0 || at+1 == len(args) {
		return nil
	}
	file := filepath.Join(args[at+1], "config.json")
	text, err := os.ReadFile(file) //nolint:gosec // G304: the runtime's own file
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := join(config); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if shared != "" {
		if err := mount(config, shared); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if text, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600) //nolint:gosec // G703: the runtime's own file
}

// join removes the network namespace, so that the container joins the host's network.
func join(config map[string]json.RawMessage) (err error) {
	var linux map[string]json.RawMessage
	var namespaces []map[string]string
	if err := json.Unmarshal(config["linux"], &linux); err != nil {
		return err
	}
	if err := json.Unmarshal(linux["namespaces"], &namespaces); err != nil {
		return err
	}
	namespaces = slices.DeleteFunc(namespaces, func(n map[string]string) bool { return n["type"] == "network" })
	if linux["namespaces"], err = json.Marshal(namespaces); err == nil {
		config["linux"], err = json.Marshal(linux)
	}
	return err
}

// mount adds a bind mount of the folder shared.
func mount(config map[string]json.RawMessage, shared string) (err error) {
	var mounts []json.RawMessage
	if err := json.Unmarshal(config["mounts"], &mounts); err != nil {
		return err
	}
	added, err := json.Marshal(map[string]any{"destination": shared, "source": shared, "type": "bind", "options": []string{"rbind", "rw", "nosuid", "nodev"}})
	if err == nil {
		config["mounts"], err = json.Marshal(append(mounts, added))
	}
	return err
}
