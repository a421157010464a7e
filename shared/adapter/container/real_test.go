//go:build containers

package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// realImage contains only this test program. It is not in a registry.
const realImage = "localhost/sortie-test:1"

// realEngine returns the address of a real engine, with realImage. "make test-containers" sets
// DOCKER_HOST.
var realEngine = sync.OnceValues(func() (address string, err error) {
	addresses, err := container.FindAddresses(os.LookupEnv)
	if err != nil {
		return "", err
	}
	if addresses.Variable == "" {
		return "", fmt.Errorf("no container engine: run make test-containers, or set DOCKER_HOST")
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	address = addresses.Tried[0]
	return address, importImage(address, realImage, map[string][]byte{"program": program, "tmp/.keep": nil}, `ENTRYPOINT ["/program", "program"]`)
})

// importImage makes an image from files.
func importImage(address, image string, content map[string][]byte, changes ...string) error {
	api, err := client.New(client.WithHost(address))
	if err != nil {
		return err
	}
	defer api.Close()
	var archive bytes.Buffer
	files := tar.NewWriter(&archive)
	for name, text := range content {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := files.Write(text); err != nil {
			return err
		}
	}
	if err := files.Close(); err != nil {
		return err
	}
	made, err := api.ImageImport(context.Background(), client.ImageImportSource{Source: &archive, SourceName: "-"}, image,
		client.ImageImportOptions{Changes: changes})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, made)
	return errors.Join(err, made.Close())
}

// clusters returns a cluster name of its own to each test.
var clusters = struct {
	sync.Mutex
	next int
}{}

func realSetup(t *testing.T) platform {
	t.Helper()
	address, err := realEngine()
	if err != nil {
		t.Fatal(err)
	}
	clusters.Lock()
	clusters.next++
	cluster := fmt.Sprintf("t%dx%d", os.Getpid(), clusters.next)
	clusters.Unlock()
	p := newProxy(t, address)
	runner, config := newRunner(t, p.url, cluster, func(c *container.Config) {
		c.Join = func(context.Context, container.Place) (container.Route, error) {
			return container.Route{Network: "host"}, nil
		}
		c.KeepFor = time.Nanosecond
	})
	t.Cleanup(func() { removeAll(t, address, cluster) })
	return platform{proxy: p, runner: runner, config: config}
}

// removeAll removes the containers whose names have the cluster.
func removeAll(t *testing.T, address, cluster string) {
	api, err := client.New(client.WithHost(address))
	if err != nil {
		t.Error(err)
		return
	}
	defer api.Close()
	ctx := context.Background()
	found, err := api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		t.Error(err)
	}
	for _, c := range found.Items {
		if len(c.Names) == 0 || !strings.Contains(c.Names[0], "sortie-"+cluster+"-") {
			continue
		}
		if _, err := api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}
}

func TestRealEngine(t *testing.T) {
	t.Parallel()
	porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
		p := realSetup(t)
		return porttest.RunnerHarness{
			Runner: p.runner, Image: realImage, NoImage: "localhost/none:v1", Unknown: unknown,
			Occupy: func(t *testing.T, name string) {
				occupy(t, http.DefaultTransport, p.proxy.url, realImage, "sortie-"+p.config.Cluster+"-"+name)
			},
			Fault: func(_ *testing.T, name string, how porttest.RunnerFault) { p.proxy.fail(name, how) },
		}
	})
}

// reportsOOM reports whether the engine reports that memory was exhausted. With cgroups of
// version 1, Podman 4.3 does not if the first process of the container is killed.
func reportsOOM(t *testing.T, address string) bool {
	t.Helper()
	api, err := client.New(client.WithHost(address))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	got, err := api.Info(limited(t), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Info.CgroupVersion != "1" || !strings.HasPrefix(got.Info.ServerVersion, "4.")
}

func TestRealMemoryLimit(t *testing.T) {
	t.Parallel()
	p := realSetup(t)
	s := spec("r-oom", "eat")
	s.Image, s.MemoryMB = realImage, 256
	exit := gone(t, p.runner, launch(t, p.runner, s).Machine)
	if exit.Code != 137 || exit.Requested {
		t.Errorf("got exit %+v, want a kill for memory", exit)
	}
	if reports := reportsOOM(t, p.proxy.url); exit.OOM != reports || (exit.Signal == 9) != reports {
		t.Errorf("got exit %+v, want OOM %v", exit, reports)
	}
}

// TestRealConfinement checks that the container has no capabilities, no new privileges, a
// read-only root and a writable /tmp. The output can be read after the container ended and was
// destroyed, until it is pruned.
func TestRealConfinement(t *testing.T) {
	t.Parallel()
	p := realSetup(t)
	s := spec("r-look", "look")
	s.Image = realImage
	m := launch(t, p.runner, s)
	if exit := gone(t, p.runner, m.Machine); exit.Code != 5 {
		t.Errorf("got exit %+v, want code 5", exit)
	}
	if err := p.runner.Destroy(limited(t), m.Machine); err != nil {
		t.Fatal(err)
	}
	text, err := p.runner.Logs(limited(t), m.Machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "read-only file system", "/tmp is writable"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
	if err := p.runner.Prune(limited(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.runner.Inspect(limited(t), m.Machine); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v, want the container removed", err)
	}
}

func TestRealProgramThatIsMissing(t *testing.T) {
	t.Parallel()
	p := realSetup(t)
	address, err := realEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := importImage(address, "localhost/sortie-empty:1", map[string][]byte{"file": nil}); err != nil {
		t.Fatal(err)
	}
	s := spec("r-missing", "rest")
	s.Image, s.Command = "localhost/sortie-empty:1", []string{"/missing"}
	if _, err := p.runner.Launch(limited(t), s); !fault.Is(err, fault.LaunchRefused) || !strings.Contains(fault.Of(err).Message, "no such file") {
		t.Errorf("got %v, want %s with the engine's words", err, fault.LaunchRefused)
	}
}

func TestRealEngineThatIsAway(t *testing.T) {
	t.Parallel()
	engineThatIsAway(t, realSetup(t), realImage)
}

func TestRealContainerRemovedByHand(t *testing.T) {
	t.Parallel()
	p := realSetup(t)
	address, err := realEngine()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(client.WithHost(address))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	containerRemovedByHand(t, p, realImage, func(id string) {
		if _, err := api.ContainerRemove(limited(t), id, client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	})
}
