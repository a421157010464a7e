//go:build kubernetes

package kubernetes_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
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
	"github.com/sortie-dev/sortie/local/proof/kubernetes"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/runners/program"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	adapter "github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	image   = "registry.example.org/program:v1"
	shell   = "registry.example.org/shell:v1"
	wrapped = "registry.example.org/wrapped:v1" // the shell under sortie-exec
	noImage = "registry.example.org/unknown:none"
)

// jobProgram is the argument that turns this test binary into the program of package
// runners.
const jobProgram = "job-program"

// shared is the cluster of all tests of the package. Each test has its own namespaces.
var shared struct {
	sync.Once
	running
	err error
}

// running is a cluster with its first node.
type running struct {
	cluster *kubernetes.Cluster
	admin   clients.Interface
	first   worker
}

// close closes the node, which kills the remaining programs of pods, and the cluster.
func (r running) close() error {
	var failed error
	if r.first != nil {
		failed = r.first.Close()
	}
	return errors.Join(failed, r.cluster.Close(), os.RemoveAll(r.cluster.Dir))
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
	if len(os.Args) > 1 && os.Args[1] == nodeProgram {
		os.Exit(supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		stacktest.Main(m, os.Args, os.Environ(), map[string]stacktest.Program{jobProgram: program.Main}) // a stack, or a program that it starts
	}
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.close(); err != nil {
			slog.Error("cannot stop the cluster", "error", err)
			code = 1
		}
	}
	if err := endFleet(); err != nil {
		slog.Error("cannot remove what the nodes have shared", "error", err)
		code = 1
	}
	os.Exit(code)
}

// cluster returns the cluster of all tests, with a node.
func cluster(t *testing.T) (*kubernetes.Cluster, clients.Interface) {
	t.Helper()
	shared.Do(func() { shared.running, shared.err = start(t) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster, shared.admin
}

// ownCluster starts a cluster for a test that breaks it.
func ownCluster(t *testing.T) (*kubernetes.Cluster, clients.Interface) {
	t.Helper()
	r, err := start(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r.cluster, r.admin
}

// start starts a cluster with one node.
func start(t *testing.T) (r running, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // the first build takes minutes
	defer cancel()
	if err := checkNodes(); err != nil {
		return r, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return r, err
	}
	programs, err := kubernetes.Build(ctx, "controlplane", cache, func(s string) { t.Log(s) })
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "sortie-kubernetes-")
	if err != nil {
		return r, err
	}
	if r.cluster, err = kubernetes.Start(ctx, programs, dir, time.Now()); err != nil {
		return r, err
	}
	if r.admin, err = unlimited(r.cluster.Config); err == nil {
		r.first, err = startNode(ctx, t, r.cluster, "node-1")
	}
	if err != nil {
		return running{}, errors.Join(err, r.cluster.Close())
	}
	return r, nil
}

// unlimited returns a client without a rate limit.
func unlimited(config *rest.Config) (clients.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return clients.NewForConfig(config)
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

// stage is a Runner on the cluster with two namespaces.
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
