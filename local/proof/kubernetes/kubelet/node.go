//go:build linux

package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes"

	"github.com/sortie-dev/sortie/local/proof/debian"
)

// Packages returns the folder with the node's programs from Debian's packages. It downloads
// them if the cache does not have them.
func Packages(ctx context.Context, say func(string)) (string, error) {
	packages := []string{"runc", "libseccomp2", "busybox-static"}
	root, err := debian.Fetch(ctx, "kubelet-debian-12", packages, say, nil)
	if err != nil {
		return "", fmt.Errorf("cannot fetch the programs of nodes: %w", err)
	}
	return root, nil
}

// Busybox is the path of busybox in the folder of Packages.
const Busybox = "bin/busybox"

// Config configures a Node. All fields are required.
type Config struct {
	Client clients.Interface
	// Name is the name of the node in the cluster.
	Name string
	// Kubeconfig is the kubeconfig of an administrator. Authority is the file with the
	// certificates of API servers that may call the kubelet.
	Kubeconfig, Authority string
	// Programs are the folders with kubelet, containerd, its shim, and the program of the
	// folder runc as "runc-of-the-node". Packages is the folder of Packages.
	Programs []string
	Packages string
	// Registry is the URL of the registry of all images. Pause is the image of each pod's
	// sandbox.
	Registry, Pause string
	// Shared is the folder of the host that containers see.
	Shared string
	// Dir gets the logs and, while the node runs, its data.
	Dir string
	// Supervisor is the command that calls Supervise, with one more argument.
	Supervisor []string
}

// Wrapper is the name of the program of the folder runc.
const Wrapper = "runc-of-the-node"

// Node is a running node. Close ends it like the loss of its host: it kills all processes and
// reports nothing.
type Node struct {
	cfg     Config
	process *exec.Cmd
	alive   io.Closer
	ended   chan struct{}
	err     error
	said    bytes.Buffer
}

// Check returns an error if this process cannot run nodes.
func Check() error {
	if os.Geteuid() != 0 {
		return errors.New("nodes with a kubelet need root; without it, use nodes whose containers are processes")
	}
	probe := fmt.Sprintf("sortie-probe-%d", os.Getpid())
	return errors.Join(createGroup(probe), removeGroup(probe))
}

// Start starts a node and returns when the cluster reports it as ready. ctx limits the start.
func Start(ctx context.Context, cfg Config) (_ *Node, err error) {
	settings, err := settle(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot configure node %s: %w", cfg.Name, err)
	}
	file := filepath.Join(cfg.Dir, "node.json")
	text, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, ended: make(chan struct{})}
	n.process = exec.Command(cfg.Supervisor[0], append(slices.Clone(cfg.Supervisor[1:]), file)...) //nolint:gosec,noctx // G204: the caller's own program; Close ends it
	n.process.Stdout, n.process.Stderr = &n.said, &n.said
	n.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // closing the input also ends it if the test is interrupted
	if n.alive, err = n.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		n.err = n.process.Wait()
		close(n.ended)
	}()
	if err := n.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s does not start: %w; its logs are %s/*.log", cfg.Name, err, cfg.Dir), n.Close())
	}
	return n, nil
}

// readyLimit limits the time until a node is ready.
const readyLimit = 2 * time.Minute

// ready waits until the cluster reports the node as ready.
func (n *Node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	often := time.NewTicker(100 * time.Millisecond)
	defer often.Stop()
	for {
		node, err := n.cfg.Client.CoreV1().Nodes().Get(ctx, n.cfg.Name, metav1.GetOptions{})
		if err == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return nil
		}
		select {
		case <-often.C:
		case <-n.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Close kills the node. It returns when everything but the logs is removed.
func (n *Node) Close() error {
	_ = n.alive.Close() // a second Close gets an error here
	<-n.ended
	if n.err != nil {
		return fmt.Errorf("node %s: %w: %s", n.cfg.Name, n.err, strings.TrimSpace(n.said.String()))
	}
	return nil
}

// hostAddress returns an address of this host at which the API server can reach the kubelet.
// The kubelet does not accept a loopback address.
func hostAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this host has no address but loopback, want one for the kubelet")
}

// freePort finds a free port of the address.
func freePort(address string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a TCP listener
}
