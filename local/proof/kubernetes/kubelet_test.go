//go:build kubernetes && linux

package kubernetes_test

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/kubernetes"
	"github.com/sortie-dev/sortie/local/proof/kubernetes/kubelet"
	"github.com/sortie-dev/sortie/local/proof/runners"
)

// nodeProgram is the argument that turns this test binary into the supervisor of a node.
const nodeProgram = "node-with-a-kubelet"

// fleet is the state that all nodes with a kubelet share.
var fleet struct {
	sync.Once
	dir, shared, packages string
	programs              []string
	registry              *kubelet.Registry
	err                   error
}

// equip prepares the fleet once: programs, packages and the registry.
func equip(ctx context.Context, t *testing.T) error {
	fleet.Do(func() { fleet.err = equipFleet(ctx, t) })
	return fleet.err
}

func equipFleet(ctx context.Context, t *testing.T) (err error) {
	if fleet.dir, err = os.MkdirTemp("", "sortie-fleet-"); err != nil {
		return err
	}
	fleet.shared = filepath.Join(fleet.dir, "shared")
	// Programs of pods access it, and are not root.
	if err := errors.Join(os.Chmod(fleet.dir, 0o755), os.Mkdir(fleet.shared, 0o755)); err != nil { //nolint:gosec // G301, G302: see above
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	say := func(s string) { t.Log(s) }
	if fleet.programs, err = kubernetes.BuildNode(ctx, "controlplane", "containerd", cache, say); err != nil {
		return err
	}
	wrapper := exec.CommandContext(ctx, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", filepath.Join(fleet.dir, kubelet.Wrapper), "./kubelet/runc")
	if text, err := wrapper.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the wrapper of runc: %w: %s", err, text)
	}
	fleet.programs = append(fleet.programs, fleet.dir)
	if fleet.packages, err = kubelet.Packages(ctx, say); err != nil {
		return err
	}
	files, err := imageFiles(t, fleet.packages)
	if err != nil {
		return err
	}
	fleet.registry, err = kubelet.StartRegistry(files, commands("/test", "/sortie-exec", "/program", "/broken"), runners.User, runners.Folder)
	return err
}

// imageFiles returns the files of all images: this program, the programs of package runners,
// and a shell with the programs that scripts call.
func imageFiles(t *testing.T, packages string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := static(self); err != nil {
		return nil, err
	}
	files, err := kubelet.NewFiles(runners.FileSystem(t, "../../.."))
	if err != nil {
		return nil, err
	}
	for name, from := range map[string]string{"test": self, "bin/busybox": filepath.Join(packages, kubelet.Busybox)} {
		code, err := os.ReadFile(from)
		if err == nil {
			err = files.Add(name, code)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"sh", "sleep", "touch"} {
		if err := files.Link("bin/"+name, "busybox"); err != nil {
			return nil, err
		}
	}
	return files.Archive()
}

// static returns an error for a program that needs a dynamic linker, because the images have no
// dynamic linker.
func static(program string) error {
	file, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return errors.New("the test program needs a dynamic linker; build it with CGO_ENABLED=0")
	}
	return nil
}

func checkKubelets() error { return kubelet.Check() }

// startKubelet starts a node with a kubelet.
func startKubelet(ctx context.Context, t *testing.T, c *kubernetes.Cluster, name string) (worker, error) {
	if err := equip(ctx, t); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	client, err := unlimited(c.Config)
	if err != nil {
		return nil, err
	}
	if err := shrink(ctx, client); err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return kubelet.Start(ctx, kubelet.Config{
		Client: client, Name: name, Kubeconfig: filepath.Join(c.Dir, "kubeconfig"), Authority: c.Authority(),
		Programs: fleet.programs, Packages: fleet.packages, Registry: fleet.registry.URL, Pause: pause, Shared: fleet.shared, Dir: dir,
		Supervisor: []string{self, nodeProgram},
	})
}

// sharedFolder returns a folder that the programs of pods can access.
func sharedFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(fleet.shared, strings.ToLower(t.Name())+"-")
	if err == nil {
		err = os.Chmod(dir, 0o777) //nolint:gosec // G302: programs of another user write to it
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// supervise runs the supervisor of a node.
func supervise(args []string) int { return kubelet.Supervise(args) }

// endFleet removes the shared state of the nodes.
func endFleet() error {
	if fleet.registry != nil {
		_ = fleet.registry.Close() // its address is free
	}
	return os.RemoveAll(fleet.dir)
}
