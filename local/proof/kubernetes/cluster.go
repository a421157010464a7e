package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster is a control plane without nodes. Close stops it.
type Cluster struct {
	// Dir has the data, the keys, the logs and the file "kubeconfig".
	Dir string
	// Config is the configuration of an administrator's client.
	Config *rest.Config

	programs string
	ports    struct{ api, etcd, peer int }
	mu       sync.Mutex
	running  map[string]*process
}

// process is a program of the control plane.
type process struct {
	*exec.Cmd
	ended chan struct{}
	err   error
}

// Start starts the programs of the folder and returns when the API server is ready. dir gets
// their data and must be empty. ctx limits the start. now is the start of the validity of the
// API server's certificate.
func Start(ctx context.Context, programs, dir string, now time.Time) (*Cluster, error) {
	c := &Cluster{Dir: dir, programs: programs, running: map[string]*process{}}
	if err := c.prepare(now); err != nil {
		return nil, err
	}
	err := c.run("etcd", "--data-dir", c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls", c.url(c.ports.etcd), "--advertise-client-urls", c.url(c.ports.etcd),
		"--listen-peer-urls", c.url(c.ports.peer), "--initial-advertise-peer-urls", c.url(c.ports.peer),
		"--initial-cluster", "default="+c.url(c.ports.peer))
	if err == nil {
		err = c.StartAPIServer(ctx)
	}
	if err == nil {
		err = c.StartControllers()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

// Authority returns the file with the certificate of the API server. The certificate is
// self-signed; the API server also calls kubelets with it.
func (c *Cluster) Authority() string { return c.path("server.crt") }

func (c *Cluster) url(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

const token = "administrator" // the API server listens on loopback and lives for a test

// freePorts finds distinct free loopback ports.
func freePorts(ports ...*int) error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, port := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("cannot find a port: %w", err)
		}
		held = append(held, l)
		*port = l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener
	}
	return nil
}

// prepare finds ports and writes the keys and the kubeconfig.
func (c *Cluster) prepare(now time.Time) error {
	if err := freePorts(&c.ports.api, &c.ports.etcd, &c.ports.peer); err != nil {
		return err
	}
	key, certificate, err := keys(now)
	if err != nil {
		return fmt.Errorf("cannot generate the cluster's keys: %w", err)
	}
	kube := clientcmdapi.NewConfig()
	kube.Clusters["local"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:" + strconv.Itoa(c.ports.api), CertificateAuthorityData: certificate}
	kube.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: token}
	kube.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "admin"}
	kube.CurrentContext = "local"
	err = errors.Join(
		os.WriteFile(c.path("server.key"), key, 0o600),
		os.WriteFile(c.path("server.crt"), certificate, 0o600),
		os.WriteFile(c.path("tokens.csv"), []byte(token+`,admin,admin,"system:masters"`+"\n"), 0o600),
		clientcmd.WriteToFile(*kube, c.path("kubeconfig")),
	)
	if err != nil {
		return fmt.Errorf("cannot write the cluster's files: %w", err)
	}
	c.Config, err = clientcmd.NewDefaultClientConfig(*kube, nil).ClientConfig()
	return err
}

// StartAPIServer starts the API server and returns when it is ready. The data of an earlier one
// are kept.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	err := c.run("kube-apiserver", "--etcd-servers="+c.url(c.ports.etcd), "--cert-dir="+c.Dir,
		"--tls-cert-file="+c.path("server.crt"), "--tls-private-key-file="+c.path("server.key"),
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(c.ports.api), "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+c.path("server.key"),
		"--service-account-signing-key-file="+c.path("server.key"), "--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate="+c.Authority(), "--kubelet-client-key="+c.path("server.key"),
		"--shutdown-delay-duration=0s")
	if err != nil {
		return err
	}
	often := time.NewTicker(50 * time.Millisecond)
	defer often.Stop()
	server := c.process("kube-apiserver")
	for {
		if err = c.ready(ctx); err == nil {
			return nil
		}
		select {
		case <-often.C:
		case <-server.ended:
			return fmt.Errorf("the API server has ended: %w; its log is %s", server.err, c.path("kube-apiserver.log"))
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w; its log is %s", errors.Join(ctx.Err(), err), c.path("kube-apiserver.log"))
		}
	}
}

// ready returns an error unless the API server reports that it is ready.
func (c *Cluster) ready(ctx context.Context) error {
	config := rest.CopyConfig(c.Config)
	config.Timeout = 5 * time.Second
	client, err := clients.NewForConfig(config)
	if err != nil {
		return err
	}
	return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// StartControllers starts the controller manager and the scheduler.
func (c *Cluster) StartControllers() error {
	kubeconfig := "--kubeconfig=" + c.path("kubeconfig")
	return errors.Join(
		c.run("kube-controller-manager", kubeconfig, "--leader-elect=false", "--secure-port=0",
			"--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-job-syncs=20",
			"--node-monitor-period=1s", "--node-monitor-grace-period=5s",
			"--controllers=job-controller,pod-garbage-collector-controller,ttl-after-finished-controller,garbage-collector-controller,"+
				"namespace-controller,node-lifecycle-controller,taint-eviction-controller,resourcequota-controller"),
		c.run("kube-scheduler", kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"),
	)
}

func (c *Cluster) process(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[name]
}

// run starts a program and appends its output to a file.
func (c *Cluster) run(name string, args ...string) error {
	log, err := os.OpenFile(c.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer log.Close()
	p := &process{exec.Command(filepath.Join(c.programs, name), args...), make(chan struct{}), nil} //nolint:gosec // G204: built here
	p.Stdout, p.Stderr = log, log
	p.SysProcAttr = attributes()
	if err := p.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[name] = p
	return nil
}

// Kill kills a program of the control plane, like a crash, and returns when it has ended.
func (c *Cluster) Kill(name string) error {
	p := c.process(name)
	if p == nil {
		return nil
	}
	if err := p.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", name, err)
	}
	<-p.ended
	return nil
}

// Close kills the programs. It keeps the folder.
func (c *Cluster) Close() error {
	var failed []error
	for _, p := range slices.Backward(programs) {
		failed = append(failed, c.Kill(p.name))
	}
	return errors.Join(failed...)
}
