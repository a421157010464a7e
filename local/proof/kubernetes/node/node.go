// Package node runs a node of a Kubernetes cluster whose containers are processes of this host,
// without images, isolation or a network of their own. It is for tests and for development.
//
// It reports the status of a pod as a kubelet does, including errors for unknown images. A
// deleted pod gets SIGTERM, and SIGKILL after its grace period.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Config configures a Node. All fields are required.
type Config struct {
	Client clients.Interface
	// Name is the name of the node in the cluster.
	Name string
	// Images maps image names to commands. The arguments of a container are appended.
	Images map[string][]string
	// Dir gets the logs of containers.
	Dir string
	// Path is the variable PATH of the processes.
	Path string
	// Now is the time, for the certificate of the node.
	Now time.Time
	Log *slog.Logger
}

// Node runs pods. Close ends it like the loss of its host: it kills its processes and reports
// nothing.
type Node struct {
	cfg    Config
	cancel context.CancelFunc
	ended  sync.WaitGroup
	logs   *http.Server

	mu   sync.Mutex
	pods map[types.UID]*pod
}

// leaseTime is how often the node renews its lease.
const leaseTime = time.Second

// Start registers the node and runs the pods that are bound to it.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, pods: map[types.UID]*pod{}}
	port, err := n.serveLogs()
	if err != nil {
		return nil, fmt.Errorf("cannot serve logs: %w", err)
	}
	if err := n.register(ctx, port); err != nil {
		n.logs.Close()
		return nil, fmt.Errorf("cannot register node %s: %w", cfg.Name, err)
	}
	ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	watches := cache.NewListWatchFromClient(cfg.Client.CoreV1().RESTClient(), "pods", "", fields.OneTermEqualSelector("spec.nodeName", cfg.Name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: watches, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { n.seen(ctx, o) },
			UpdateFunc: func(_, o any) { n.seen(ctx, o) },
		},
	})
	n.ended.Go(func() { informer.RunWithContext(ctx) })
	n.ended.Go(func() { n.renew(ctx) })
	return n, nil
}

// Close ends the node and kills its processes.
func (n *Node) Close() error {
	n.cancel()
	n.mu.Lock()
	for _, p := range n.pods {
		p.kill()
	}
	n.mu.Unlock()
	err := n.logs.Close() // n.ended also waits for the server
	n.ended.Wait()
	return err
}

func (n *Node) register(ctx context.Context, port int32) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Labels: map[string]string{corev1.LabelHostname: n.cfg.Name, corev1.LabelOSStable: "linux"}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions:      ready(),
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
		},
	}
	made, err := n.cfg.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = n.cfg.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	for { // the cluster labels and taints a new node concurrently
		made.Status = node.Status
		_, err = n.cfg.Client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			break
		}
		if made, err = n.cfg.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Namespace: corev1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.cfg.Name, LeaseDurationSeconds: new(int32(5)), RenewTime: new(metav1.NowMicro())},
	}
	_, err = n.cfg.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// renew renews the node's lease until the context ends.
func (n *Node) renew(ctx context.Context) {
	often := time.NewTicker(leaseTime)
	defer often.Stop()
	for {
		select {
		case <-often.C:
		case <-ctx.Done():
			return
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}})
		if err == nil {
			_, err = n.cfg.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, n.cfg.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err == nil {
			err = n.reportReady(ctx)
		}
		if err != nil && ctx.Err() == nil {
			n.cfg.Log.Debug("cannot renew the lease of the node", "node", n.cfg.Name, "error", err)
		}
	}
}

// reportReady reports the node as ready after an outage in which the cluster declared it
// unknown.
func (n *Node) reportReady(ctx context.Context) error {
	now, err := n.cfg.Client.CoreV1().Nodes().Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if err != nil || slices.ContainsFunc(now.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		return err
	}
	now.Status.Conditions = ready()
	_, err = n.cfg.Client.CoreV1().Nodes().UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}

func ready() []corev1.NodeCondition {
	return []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
}

// sync starts a new pod, and stops a deleted one.
func (n *Node) sync(ctx context.Context, now *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[now.UID]
	if p == nil {
		if now.Status.Phase == corev1.PodSucceeded || now.Status.Phase == corev1.PodFailed {
			return
		}
		p = newPod(n.cfg, now)
		n.pods[now.UID] = p
		n.ended.Go(func() { p.run(ctx) })
	}
	if now.DeletionTimestamp != nil {
		p.stop(now)
	}
}

func (n *Node) serveLogs() (int32, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	certificate, err := selfSigned(n.cfg.Now)
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLog)
	n.logs = &http.Server{Handler: mux, TLSConfig: certificate, ReadHeaderTimeout: 10 * time.Second}
	n.ended.Go(func() { _ = n.logs.ServeTLS(l, "", "") }) // ends with Close
	return int32(l.Addr().(*net.TCPAddr).Port), nil       //nolint:gosec,forcetypeassert // a port
}

// seen handles an added or updated pod of the informer.
func (n *Node) seen(ctx context.Context, o any) {
	if pod, ok := o.(*corev1.Pod); ok {
		n.sync(ctx, pod)
	}
}

// serveLog serves the log of a container as written so far.
func (n *Node) serveLog(w http.ResponseWriter, q *http.Request) {
	n.mu.Lock()
	var file string
	for _, p := range n.pods {
		if p.first.Namespace == q.PathValue("namespace") && p.first.Name == q.PathValue("pod") {
			file = p.log
		}
	}
	n.mu.Unlock()
	if file == "" {
		http.Error(w, "the node does not have the pod", http.StatusNotFound)
		return
	}
	http.ServeFile(w, q, file)
}
