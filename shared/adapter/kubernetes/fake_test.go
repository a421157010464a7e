package kubernetes

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
)

var (
	jobsKind = batchv1.SchemeGroupVersion.WithResource("jobs")
	podsKind = corev1.SchemeGroupVersion.WithResource("pods")
)

const (
	image   = "registry.example.org/program:v1"
	noImage = "registry.example.org/unknown:none"
)

// cluster simulates the job controller and a node on client-go's fake. Programs are goroutines.
type cluster struct {
	*fake.Clientset
	t  *testing.T
	mu sync.Mutex
	// faults are by name of the Job. broken contains the namespaces that cannot be watched.
	faults map[string]porttest.RunnerFault
	broken map[string]bool
	// held are the names of Jobs that another controller suspends at their creation.
	held     map[string]bool
	watches  map[string][]watch.Interface
	programs map[types.UID]*program // by UID of the pod
	ended    sync.WaitGroup
}

// The methods of Client call the fake, which has the whole API.

func (c *cluster) Jobs(namespace string) Calls[*batchv1.Job, *batchv1.JobList] {
	return c.BatchV1().Jobs(namespace)
}

func (c *cluster) Pods(namespace string) Calls[*corev1.Pod, *corev1.PodList] {
	return c.CoreV1().Pods(namespace)
}

func (c *cluster) Secrets(namespace string) Calls[*corev1.Secret, *corev1.SecretList] {
	return c.CoreV1().Secrets(namespace)
}

func (c *cluster) Events(namespace string) Calls[*corev1.Event, *corev1.EventList] {
	return c.CoreV1().Events(namespace)
}

func (c *cluster) Log(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	return c.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
}

type program struct {
	terminated chan struct{}
	killed     chan struct{}
	kill       func()
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{
		Clientset: fake.NewClientset(), t: t, faults: map[string]porttest.RunnerFault{}, broken: map[string]bool{},
		held:    map[string]bool{},
		watches: map[string][]watch.Interface{}, programs: map[types.UID]*program{},
	}
	for verb, react := range map[string]func(clienttesting.Action) (bool, runtime.Object, error){
		"create jobs": c.createJob, "patch jobs": c.patchJob, "delete jobs": c.deleteJob, "create secrets": c.createSecret,
		"delete pods": c.deletePod, "patch pods": c.patchPod, "list jobs": c.refuse, "list pods": c.refuse,
	} {
		verb, resource, _ := strings.Cut(verb, " ")
		c.PrependReactor(verb, resource, react)
	}
	c.PrependWatchReactor("*", c.watch)
	t.Cleanup(func() {
		c.mu.Lock()
		for _, p := range c.programs {
			p.kill()
		}
		c.mu.Unlock()
		c.ended.Wait()
	})
	return c
}

// take returns the fault of the next launch of a name.
func (c *cluster) take(name string) porttest.RunnerFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := c.faults[name]
	delete(c.faults, name)
	return how
}

func (c *cluster) createJob(a clienttesting.Action) (bool, runtime.Object, error) {
	job := a.(clienttesting.CreateAction).GetObject().(*batchv1.Job).DeepCopy()
	how := c.take(job.Name)
	switch how {
	case porttest.RunnerThrottles:
		return true, nil, apierrors.NewTooManyRequests("too many requests, please try again later", 1)
	case porttest.RunnerLosesRequest:
		return true, nil, apierrors.NewInternalError(fmt.Errorf("connection refused"))
	}
	job.UID, job.CreationTimestamp = uuid.NewUUID(), metav1.Now()
	if c.holds(job) {
		job.Spec.Suspend = new(true)
	}
	if err := c.Tracker().Create(jobsKind, job, job.Namespace); err != nil {
		return true, nil, err
	}
	if c.holds(job) {
		return true, job, nil
	}
	c.createPod(job, how == porttest.RunnerIsFull)
	if how == porttest.RunnerLosesAnswer {
		return true, nil, apierrors.NewTimeoutError("the request timed out", 1)
	}
	return true, job, nil
}

func (c *cluster) holds(job *batchv1.Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[job.Name]
}

// resume acts as the controller that suspends Jobs. The pod of the Job does not start. If full,
// no node has room for it; otherwise its image cannot be pulled.
func (c *cluster) resume(namespace, name string, full bool) {
	c.mu.Lock()
	held := c.held[name]
	delete(c.held, name)
	c.mu.Unlock()
	found, err := c.Tracker().Get(jobsKind, namespace, name)
	if !held || err != nil {
		return
	}
	job := found.(*batchv1.Job).DeepCopy()
	job.Spec.Suspend = nil
	c.check(c.Tracker().Update(jobsKind, job, namespace))
	if !full {
		job.Spec.Template.Spec.Containers[0].Image = noImage
	}
	c.createPod(job, full)
}

// createSecret starts the pod that needs the Secret.
func (c *cluster) createSecret(a clienttesting.Action) (bool, runtime.Object, error) {
	secret := a.(clienttesting.CreateAction).GetObject().(*corev1.Secret)
	if err := c.Tracker().Create(corev1.SchemeGroupVersion.WithResource("secrets"), secret, secret.Namespace); err != nil {
		return true, nil, err
	}
	p := c.pod(secret.Namespace, secret.OwnerReferences[0].Name+"-x")
	if p == nil || p.Spec.Containers[0].Image != image || len(p.Status.Conditions) > 0 || p.DeletionTimestamp != nil {
		return true, secret, nil
	}
	var once sync.Once
	run := &program{make(chan struct{}), make(chan struct{}), nil}
	run.kill = func() { once.Do(func() { close(run.killed) }) }
	c.mu.Lock()
	c.programs[p.UID] = run
	c.mu.Unlock()
	p.Status.Phase, p.Status.ContainerStatuses[0].State = corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	c.check(c.Tracker().Update(podsKind, p, p.Namespace))
	c.ended.Go(func() {
		code := porttest.RunnerProgram(func(name string) string { return secret.StringData[name] }, run.terminated, run.killed)
		c.exit(p, code)
	})
	return true, secret, nil
}

// patchJob also acts as the job controller, which deletes the pods of a suspended Job.
func (c *cluster) patchJob(a clienttesting.Action) (bool, runtime.Object, error) {
	_, changed, err := clienttesting.ObjectReaction(c.Tracker())(a)
	if err != nil {
		return true, nil, err
	}
	job := changed.(*batchv1.Job).DeepCopy()
	if isTrue(job.Spec.Suspend) && condition(job, batchv1.JobSuspended) == nil {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
		c.check(c.Tracker().Update(jobsKind, job, job.Namespace))
		c.endPod(job.Namespace, job.Name+"-x", 30)
	}
	return true, job, nil
}

// deleteJob also acts as the garbage collector.
func (c *cluster) deleteJob(a clienttesting.Action) (bool, runtime.Object, error) {
	deletion := a.(clienttesting.DeleteActionImpl)
	if policy := deletion.DeleteOptions.PropagationPolicy; policy == nil || *policy != metav1.DeletePropagationBackground {
		c.t.Errorf("got Job %s deleted with propagation %v, want Background: its pod would continue", deletion.Name, policy)
	}
	err := c.Tracker().Delete(jobsKind, deletion.GetNamespace(), deletion.Name)
	c.endPod(deletion.GetNamespace(), deletion.Name+"-x", 30)
	return true, nil, err
}

func (c *cluster) isBroken(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken[namespace]
}

// refuse fails the lists of the informers of a broken namespace.
func (c *cluster) refuse(a clienttesting.Action) (bool, runtime.Object, error) {
	informers := strings.Contains(a.(clienttesting.ListActionImpl).GetListOptions().LabelSelector, labelOwner)
	if informers && c.isBroken(a.GetNamespace()) {
		return true, nil, apierrors.NewServiceUnavailable("down")
	}
	return false, nil, nil
}

// watch opens watches that breakNamespace can end.
func (c *cluster) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	if c.isBroken(a.GetNamespace()) {
		return true, nil, apierrors.NewServiceUnavailable("down")
	}
	var options metav1.ListOptions
	if w, ok := a.(clienttesting.WatchActionImpl); ok {
		options = w.ListOptions
	}
	w, err := c.Tracker().Watch(a.GetResource(), a.GetNamespace(), options)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[a.GetNamespace()] = append(c.watches[a.GetNamespace()], w)
	if err != nil || options.LabelSelector == "" {
		return true, w, err
	}
	return true, own(w), nil
}

// own passes on only events about objects of this Sortie instance, because the fake ignores the
// selector. It copies the objects: an informer changes them, and a new watch of the fake
// returns its own objects.
func own(w watch.Interface) watch.Interface {
	out := make(chan watch.Event)
	filtered := watch.NewProxyWatcher(out)
	go func() {
		defer close(out)
		defer w.Stop()
		for {
			select {
			case e, more := <-w.ResultChan():
				if !more {
					return
				}
				if about, err := meta.Accessor(e.Object); err == nil && about.GetLabels()[labelOwner] != "sortie" {
					continue
				}
				e.Object = e.Object.DeepCopyObject()
				select {
				case out <- e:
				case <-filtered.StopChan():
					return
				}
			case <-filtered.StopChan():
				return
			}
		}
	}()
	return filtered
}

// breakNamespace cuts the watches of a namespace and refuses further ones.
func (c *cluster) breakNamespace(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[namespace] = true
	for _, w := range c.watches[namespace] {
		w.Stop()
	}
}

func (c *cluster) check(err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Errorf("the fake cluster failed: %v", err)
	}
}

// calls returns the calls of a verb and a resource, such as "create jobs".
func (c *cluster) calls(what string) int {
	verb, resource, _ := strings.Cut(what, " ")
	n := 0
	for _, a := range c.Actions() {
		if a.Matches(verb, resource) {
			n++
		}
	}
	return n
}

// occupy creates a Job without Sortie's labels.
func (c *cluster) occupy(t *testing.T, namespace, name string) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID()}}
	if err := c.Tracker().Create(jobsKind, job, namespace); err != nil {
		t.Fatal(err)
	}
}
