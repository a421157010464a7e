//go:build kubernetes

package kubernetes_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	watch "github.com/sortie-dev/sortie/functions/watch/program"
	"github.com/sortie-dev/sortie/local/proof/runners"
	"github.com/sortie-dev/sortie/local/proof/runners/program"
	"github.com/sortie-dev/sortie/local/twin/kubernetes"
	"github.com/sortie-dev/sortie/local/twin/kubernetes/node"
	"github.com/sortie-dev/sortie/local/twin/stacktest"
	adapter "github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/porttest"
	"github.com/sortie-dev/sortie/shared/worker/wrap"
)

const (
	image   = "registry.example.org/program:v1"
	shell   = "registry.example.org/shell:v1"
	wrapped = "registry.example.org/wrapped:v1" // the shell below sortie-exec
	noImage = "registry.example.org/unknown:none"
)

// jobProgram is the argument that turns this test binary into the program of package
// runners.
const jobProgram = "job-program"

// shared is the cluster of all tests of the package. Each test has namespaces of its own.
var shared struct {
	sync.Once
	cluster *kubernetes.Cluster
	admin   clients.Interface
	err     error
}

// firstNodes are the nodes with which clusters begin. Their pods are programs of this host.
var firstNodes struct {
	sync.Mutex
	list []*node.Node
}

// TestMain also runs as the program of pods, as the agent, and as the stack of TestJobs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "program" {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		os.Exit(porttest.RunnerProgram(os.Getenv, terminated, nil))
	}
	if len(os.Args) > 1 && os.Args[1] == "watch" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := watch.Main(ctx, os.Environ(), os.Stderr)
		stop()
		os.Exit(code)
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		stacktest.Main(m, os.Args, os.Environ(), map[string]stacktest.Program{jobProgram: program.Main}) // a stack, and the programs that it starts
	}
	code := m.Run()
	for _, n := range firstNodes.list {
		_ = n.Close() // it ends the programs of pods that tests leave
	}
	if c := shared.cluster; c != nil {
		if err := c.Close(); err != nil {
			slog.Error("cannot stop the cluster", "error", err)
			code = 1
		}
		_ = os.RemoveAll(c.Dir) // below the temporary folder
	}
	os.Exit(code)
}

// cluster returns the cluster of all tests, with a node.
func cluster(t *testing.T) (*kubernetes.Cluster, clients.Interface) {
	t.Helper()
	shared.Do(func() { shared.cluster, shared.admin, shared.err = start(t) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster, shared.admin
}

// ownCluster starts a cluster for one test, which breaks it.
func ownCluster(t *testing.T) (*kubernetes.Cluster, clients.Interface) {
	t.Helper()
	c, admin, err := start(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(c.Dir)
	})
	return c, admin
}

// start starts a cluster with one node.
func start(t *testing.T) (c *kubernetes.Cluster, admin clients.Interface, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // the first build takes minutes
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, err
	}
	programs, err := kubernetes.Build(ctx, "controlplane", cache, func(s string) { t.Log(s) })
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "sortie-kubernetes-")
	if err != nil {
		return nil, nil, err
	}
	if c, err = kubernetes.Start(ctx, programs, dir, time.Now()); err != nil {
		return nil, nil, err
	}
	if admin, err = unlimited(c.Config); err == nil {
		var first *node.Node
		if first, err = startNode(ctx, c, "node-1"); err == nil {
			firstNodes.Lock()
			defer firstNodes.Unlock()
			firstNodes.list = append(firstNodes.list, first)
		}
	}
	return c, admin, err
}

// unlimited returns a client without a limit of its own.
func unlimited(config *rest.Config) (clients.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return clients.NewForConfig(config)
}

func startNode(ctx context.Context, c *kubernetes.Cluster, name string) (*node.Node, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	client, err := unlimited(c.Config)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte(runners.BrokenProgram), 0o700); err != nil { //nolint:gosec // G306: a program
		return nil, err
	}
	return node.Start(ctx, node.Config{
		Client: client, Name: name, Dir: dir, Path: os.Getenv("PATH"), Now: time.Now(), Log: slog.New(slog.DiscardHandler),
		Images: map[string][]string{
			image: {self, "program"}, shell: {"/bin/sh", "-c"}, wrapped: {self, wrap.Command, "--", "/bin/sh", "-c"},
			runners.Image: {self, wrap.Command, "--", self, jobProgram}, runners.Plain: {self, jobProgram}, runners.Broken: {self, wrap.Command, "--", broken},
		},
	})
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// namespace creates a namespace that enforces the Pod Security Standard "restricted".
func namespace(t *testing.T, admin clients.Interface, name string) string {
	t.Helper()
	about := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	made, err := admin.CoreV1().Namespaces().Create(t.Context(), about, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// stage is a Runner on the cluster, with two namespaces.
type stage struct {
	*adapter.Runner
	admin      clients.Interface
	faults     *faults
	namespaces []string
}

func setup(t *testing.T, change ...func(*adapter.Config)) stage {
	t.Helper()
	c, admin := cluster(t)
	return setupOn(t, c, admin, change...)
}

func setupOn(t *testing.T, c *kubernetes.Cluster, admin clients.Interface, change ...func(*adapter.Config)) stage {
	t.Helper()
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(t.Name()))
	label = label[max(0, len(label)-30):]
	s := stage{admin: admin, faults: &faults{}, namespaces: []string{namespace(t, admin, label), namespace(t, admin, label)}}
	config := rest.CopyConfig(c.Config)
	config.Wrap(s.faults.wrap)
	client, err := adapter.ConnectWith(config)
	if err != nil {
		t.Fatal(err)
	}
	cfg := adapter.Config{
		Client: client, Cluster: "local", Orchestrator: "sortie", Namespaces: s.namespaces,
		Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	}
	for _, change := range change {
		change(&cfg)
	}
	if s.Runner, err = adapter.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
