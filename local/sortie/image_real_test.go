//go:build containers

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// imageUser is the user of the images: no name, no rights.
const imageUser = "65532:65532"

// engine is the container engine in DOCKER_HOST, which "make test-containers" starts.
func engine(t *testing.T) *client.Client {
	t.Helper()
	if os.Getenv("DOCKER_HOST") == "" {
		t.Fatal("no container engine: run make test-containers, or set DOCKER_HOST")
	}
	api, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

// The parts of a Dockerfile that this test executes itself, because it has no registry with the
// image of the compiler.
var (
	compiles = regexp.MustCompile(`go build (-trimpath \S+) -ldflags "([^"]*)" -o (/image\S+) ([^\\]*) \\`)
	lastPart = regexp.MustCompile(`(?s)\nFROM scratch\n.*`)
)

// buildImage compiles the programs as the Dockerfile does, and lets the engine build its last
// stage from them.
func buildImage(t *testing.T, api *client.Client, dockerfile, image string) {
	t.Helper()
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	command, stage := compiles.FindSubmatch(text), lastPart.Find(text)
	if command == nil || stage == nil {
		t.Fatalf("%s: got another build command or last stage, want those of this test", dockerfile)
	}
	dir := t.TempDir()
	target := filepath.Join(dir, string(command[3])) + "/"
	args := append([]string{"build", "-ldflags", string(command[2]), "-o", target}, strings.Fields(string(command[1])+" "+string(command[4]))...)
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	add := func(name string, mode int64, content []byte) {
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content))}
		if strings.HasSuffix(name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	add("Dockerfile", 0o644, []byte(strings.NewReplacer("--from=build ", "", " /image /", " image /", "65532 /data /data", "65532 data /data").Replace(string(stage))))
	add("data/", 0o700, nil)
	add("image/tmp/", 0o1777, nil)
	programs, err := os.ReadDir(target)
	if err != nil || len(programs) == 0 {
		t.Fatalf("got %d programs, %v", len(programs), err)
	}
	for _, p := range programs {
		content, err := os.ReadFile(filepath.Join(target, p.Name()))
		if err != nil {
			t.Fatal(err)
		}
		file, err := elf.NewFile(bytes.NewReader(content))
		if err != nil || file.Section(".interp") != nil {
			t.Errorf("%s: got a program with an interpreter, %v, want a static one", p.Name(), err)
		}
		add(strings.TrimPrefix(filepath.Join(string(command[3]), p.Name()), "/"), 0o755, content)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	made, err := api.ImageBuild(t.Context(), &files, client.ImageBuildOptions{Tags: []string{image}, Remove: true})
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(made.Body)
	if err = errors.Join(err, made.Body.Close()); err != nil || bytes.Contains(log, []byte(`"error"`)) {
		t.Fatalf("cannot build %s: %v: %s", image, err, log)
	}
}

// service is the service of compose.yaml.
type service struct {
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Tmpfs       []string
	Volumes     []string
	Healthcheck struct{ Test []string }
}

func composed(t *testing.T) service {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	s := file.Services["sortie"]
	if !s.ReadOnly || len(s.Tmpfs) != 1 || len(s.Volumes) != 1 || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.Healthcheck.Test) < 2 {
		t.Fatalf("got %+v, want a read-only root, /tmp, one volume, no capability and a health check", s)
	}
	return s
}

// startImage starts a container with the limits of compose.yaml.
func startImage(t *testing.T, api *client.Client, image string, command []string, env ...string) (id string) {
	t.Helper()
	s := composed(t)
	_, volume, _ := strings.Cut(s.Volumes[0], ":")
	made, err := api.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Cmd: command, Env: env},
		HostConfig: &container.HostConfig{
			ReadonlyRootfs: s.ReadOnly, CapDrop: s.CapDrop, SecurityOpt: s.SecurityOpt,
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: volume}},
			Tmpfs:  map[string]string{s.Tmpfs[0]: ""},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := api.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
	})
	found, err := api.ContainerInspect(t.Context(), made.ID, client.ContainerInspectOptions{})
	if err != nil || found.Container.Config.User != imageUser || !found.Container.HostConfig.ReadonlyRootfs {
		t.Fatalf("got %+v, %v, want the user %s and a read-only root file system", found.Container.Config, err, imageUser)
	}
	if _, err := api.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// execute runs a command in a container and returns its output and exit code.
func execute(t *testing.T, api *client.Client, id string, command ...string) (output string, code int) {
	t.Helper()
	made, err := api.ExecCreate(t.Context(), id, client.ExecCreateOptions{Cmd: command, TTY: true, AttachStdout: true, AttachStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	attached, err := api.ExecAttach(t.Context(), made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	defer attached.Close()
	text, err := io.ReadAll(attached.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := api.ExecInspect(t.Context(), made.ID, client.ExecInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(text), ended.ExitCode
}

// TestRealImageOfTheServer starts the image with a read-only root file system and a volume, and
// runs a program in it.
func TestRealImageOfTheServer(t *testing.T) {
	t.Parallel()
	const image = "localhost/sortie-server:1"
	api := engine(t)
	buildImage(t, api, "Dockerfile", image)
	id := startImage(t, api, image, nil, "AUTH_TOKEN=0123456789abcdef")
	found, err := api.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := ""
	for _, network := range found.Container.NetworkSettings.Networks {
		address = "http://" + net.JoinHostPort(network.IPAddress.String(), "8080")
	}
	if got := await(t, address+"/readyz"); got != http.StatusOK {
		t.Fatalf("got %d of %s/readyz, want 200", got, address)
	}
	for _, path := range []string{"/healthz", "/openapi.json"} {
		if got := status(t, address+path); got != http.StatusOK {
			t.Errorf("%s: got %d, want 200", path, got)
		}
	}
	if got := status(t, address+"/v1/runs"); got != http.StatusUnauthorized {
		t.Errorf("without a token: got %d, want 401", got)
	}
	text, code := execute(t, api, id, "sortie", "run", "--token-file", "/data/token", "exec:/usr/bin/sortie", "--", "version")
	if code != 0 || !strings.Contains(text, "sortie "+contract.APIVersion) {
		t.Errorf("got exit code %d and %s, want the version", code, text)
	}
	if text, code := execute(t, api, id, composed(t).Healthcheck.Test[1:]...); code != 0 {
		t.Errorf("got exit code %d of the health check and %s, want 0", code, text)
	}
	if text, code := execute(t, api, id, "sortie", "backup", "/copy.db", "--data", "/data"); code == 0 || !strings.Contains(text, "read-only") {
		t.Errorf("got exit code %d and %s, want a read-only file system", code, text)
	}
}

// TestRealImageOfTheWrapper runs a program, itself, with the image of sortie-exec.
func TestRealImageOfTheWrapper(t *testing.T) {
	t.Parallel()
	const image = "localhost/sortie-exec:1"
	api := engine(t)
	buildImage(t, api, "../../shared/sdk/go/sortie-exec/Dockerfile", image)
	id := startImage(t, api, image, []string{"--standalone", "--", "/sortie-exec", "--help"})
	ended := api.ContainerWait(t.Context(), id, client.ContainerWaitOptions{})
	select {
	case got := <-ended.Result:
		if got.StatusCode != 0 {
			t.Errorf("got exit code %d, want 0", got.StatusCode)
		}
	case err := <-ended.Error:
		t.Fatal(err)
	}
	log, err := api.ContainerLogs(t.Context(), id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err = errors.Join(err, log.Close()); err != nil || !bytes.Contains(text, []byte("sortie-exec [flags] CMD")) {
		t.Errorf("got %s, %v, want the help", text, err)
	}
}

// status returns the status of a response, or 0 without one.
func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = got.Body.Close() }()
	return got.StatusCode
}

// await waits until a server answers with 200, at most a minute, and returns the last status.
func await(t *testing.T, url string) (last int) {
	t.Helper()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for limit := time.After(time.Minute); ; {
		if last = status(t, url); last == http.StatusOK {
			return last
		}
		select {
		case <-limit:
			return last
		case <-ticks.C:
		}
	}
}
