package server

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/localstack/components"
)

// Docker runs a server as a container of the pinned image, with the plugin mounted. The
// container shares the network of the host. The server therefore listens on the host's loopback
// address, and its functions can call the host's loopback address.
type Docker struct {
	// Docker is the path of the docker command.
	Docker string
	// Plugin is the folder of the plugin.
	Plugin string
}

// mounted is the path of the plugin in the container.
const mounted = "/opt/sortie"

func (d Docker) start(ctx context.Context, s Server) (state, error) {
	// The state is stored even if this fails, because a container may be running.
	started := state{Container: "sortie-localstack-" + strconv.Itoa(s.Port), Docker: d.Docker}
	if text, err := exec.CommandContext(ctx, d.Docker, d.args(s, started.Container)...).CombinedOutput(); err != nil {
		return started, fmt.Errorf("cannot start the container: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return started, nil
}

// args returns the arguments of the docker command.
func (d Docker) args(s Server, name string) []string {
	args := []string{
		"run", "--detach", "--rm", "--name", name, "--network", "host",
		"--volume", d.Plugin + ":" + mounted + ":ro", "--env", "PYTHONPATH=" + mounted,
		"--volume", s.Dir + ":" + s.Dir + ":ro",
	}
	for _, each := range s.settings() {
		args = append(args, "--env", each)
	}
	return append(args, components.Image)
}

// running reports whether the container is running.
func (s state) running(ctx context.Context) bool {
	text, err := exec.CommandContext(ctx, s.Docker, "inspect", "--format", "{{.State.Running}}", s.Container).Output()
	return err == nil && strings.TrimSpace(string(text)) == "true"
}

// remove kills and removes the container.
func (s state) remove(ctx context.Context) error {
	if !s.running(ctx) {
		return nil
	}
	if text, err := exec.CommandContext(ctx, s.Docker, "rm", "--force", s.Container).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot stop the container: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

func (s state) logs(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, s.Docker, "logs", "--tail", "30", s.Container).CombinedOutput()
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	return string(text)
}
