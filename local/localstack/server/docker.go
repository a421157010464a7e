package server

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/localstack/components"
)

// Docker runs a server as a container of the pinned image, with the plugin
// mounted. The container shares the host's network: functions in it call the
// host's loopback, and the server listens there, as in the other way.
type Docker struct {
	// Docker is the file of the command line.
	Docker string
	// Plugin is the folder of the plugin.
	Plugin string
}

// mounted is where the container finds the plugin.
const mounted = "/opt/sortie"

func (d Docker) start(ctx context.Context, s Server) (state, error) {
	// It is noted even where this fails: a container may have begun to run.
	begun := state{Container: "sortie-localstack-" + strconv.Itoa(s.Port), Docker: d.Docker}
	if text, err := exec.CommandContext(ctx, d.Docker, d.args(s, begun.Container)...).CombinedOutput(); err != nil {
		return begun, fmt.Errorf("cannot start the container: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return begun, nil
}

// args are the words after "docker".
func (d Docker) args(s Server, name string) []string {
	args := []string{
		"run", "--detach", "--rm", "--name", name, "--network", "host",
		"--volume", d.Plugin + ":" + mounted + ":ro", "--env", "PYTHONPATH=" + mounted,
	}
	for _, each := range s.settings() {
		args = append(args, "--env", each)
	}
	return append(args, components.Image)
}

// running asks Docker.
func (s state) running(ctx context.Context) bool {
	text, err := exec.CommandContext(ctx, s.Docker, "inspect", "--format", "{{.State.Running}}", s.Container).Output()
	return err == nil && strings.TrimSpace(string(text)) == "true"
}

// remove kills the container and removes it.
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
