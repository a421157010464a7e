package kubernetes

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/sortie-dev/sortie/shared/port"
)

// byUID is the index of Jobs and pods by the UID of the Job.
const byUID = "uid"

// part is the cache of the Jobs and pods of one namespace.
type part struct {
	namespace  string
	jobs, pods cache.Indexer
	// informers fill the cache. It is empty if the Runner polls.
	informers []cache.SharedIndexInformer

	mu sync.Mutex
	// broken has the error of the last call of each informer that failed.
	broken map[string]error
	// waiting are the channels of callers that wait for a change of a Job or its pods.
	waiting map[types.UID]map[chan struct{}]struct{}
	gone    goneSince
	// stuck maps a Job to the time when this process first saw its pod unschedulable. The clock
	// of the cluster can differ.
	stuck map[types.UID]time.Time
}

// lister lists and watches the objects of one kind in one namespace.
type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

func newPart(cfg Config, namespace string) (*part, error) {
	p := &part{
		namespace: namespace, broken: map[string]error{}, waiting: map[types.UID]map[chan struct{}]struct{}{}, gone: goneSince{},
		stuck: map[types.UID]time.Time{},
	}
	if cfg.Poll {
		p.jobs, p.pods = cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexes(uidOfJob)), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexes(uidOfPod))
		return p, nil
	}
	jobs, noJobs := informer(p, cfg, "jobs", &batchv1.Job{}, cfg.Client.Jobs(namespace), uidOfJob)
	pods, noPods := informer(p, cfg, "pods", &corev1.Pod{}, cfg.Client.Pods(namespace), uidOfPod)
	p.jobs, p.pods, p.informers = jobs.GetIndexer(), pods.GetIndexer(), []cache.SharedIndexInformer{jobs, pods}
	return p, errors.Join(noJobs, noPods)
}

// uidOfJob and uidOfPod return the UID of the Job to which an object belongs.
func uidOfJob(o metav1.Object) types.UID { return o.GetUID() }
func uidOfPod(o metav1.Object) types.UID { return types.UID(o.GetLabels()[labelJobUID]) }

// indexes returns the index of a cache by the UID of the Job.
func indexes(of func(metav1.Object) types.UID) cache.Indexers {
	return cache.Indexers{byUID: func(o any) ([]string, error) {
		about, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		return []string{string(of(about))}, nil
	}}
}

// informer returns an informer about the objects of this Sortie instance. of returns the UID of
// the Job of an object.
func informer[L runtime.Object](
	p *part, cfg Config, kind string, example runtime.Object, calls lister[L], of func(metav1.Object) types.UID,
) (cache.SharedIndexInformer, error) {
	ours := labelOwner + "=" + cfg.Orchestrator
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = ours
			found, err := calls.List(ctx, o)
			p.observe(ctx, kind, err)
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = ours
			changes, err := calls.Watch(ctx, o)
			p.observe(ctx, kind, err)
			return changes, err
		},
	}, cfg.Client)
	i := cache.NewSharedIndexInformer(lw, example, 0, indexes(of))
	changed := func(o any) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if about, err := meta.Accessor(o); err == nil {
			p.signal(of(about))
		}
		if pod, ok := o.(*corev1.Pod); ok {
			p.time(pod, cfg.Clock.Now())
		}
	}
	_, added := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: func(o any) {
			changed(o)
			p.forget(o)
		},
	})
	return i, errors.Join(i.SetTransform(slim), i.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}), added)
}

// slim removes the fields of an object that the Runner does not read, which are most of it.
func slim(o any) (any, error) {
	if about, err := meta.Accessor(o); err == nil {
		about.SetManagedFields(nil)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
	case *batchv1.Job:
		o.Spec = batchv1.JobSpec{Suspend: o.Spec.Suspend}
	}
	return o, nil
}

// run watches until the context ends.
func (p *part) run(ctx context.Context, cfg Config) {
	// List reports failures. Those in the informers' own log do not help an operator.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quiet{cfg.Log.Handler()}))
	var all sync.WaitGroup
	for _, i := range p.informers {
		all.Go(func() { i.RunWithContext(ctx) })
	}
	all.Wait()
}

// time records when a pod was first seen unschedulable, or removes that record.
func (p *part) time(pod *corev1.Pod, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := jobOf(pod).uid
	switch _, known := p.stuck[uid]; {
	case unschedulable(pod) == nil || pod.DeletionTimestamp != nil:
		delete(p.stuck, uid)
	case !known:
		p.stuck[uid] = now
	}
}

// forget removes the record of a pod that is deleted.
func (p *part) forget(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.stuck, jobOf(pod).uid)
	}
}

// patient reports whether the pod of a Job may still be unschedulable within
// Config.Unschedulable.
func (p *part) patient(uid types.UID, cfg Config) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, known := p.stuck[uid]
	return !known || cfg.Clock.Now().Sub(since) < cfg.Unschedulable
}

// status returns the status of a machine from the cache.
func (p *part) status(at place, cfg Config) port.MachineStatus {
	return p.seen(at.uid).status(cfg.Cluster, at, p.patient(at.uid, cfg))
}

// observe records the result of a call of an informer.
func (p *part) observe(ctx context.Context, kind string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil, apiGone(err):
		delete(p.broken, kind)
	case ctx.Err() == nil:
		p.broken[kind] = err
	}
}

// health returns the error of the watch. It returns nil if the cache is up to date, apart from
// the usual delay.
func (p *part) health() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, err := range p.broken {
		return err
	}
	for _, i := range p.informers {
		if !i.HasSynced() {
			return errNotRead
		}
	}
	return nil
}

var errNotRead = errors.New("the cluster's first answer is outstanding")

// seen returns the objects of a Job in the cache.
func (p *part) seen(uid types.UID) (o objects) {
	for _, j := range indexed[*batchv1.Job](p.jobs, uid) {
		o.job = j
	}
	o.pods = indexed[*corev1.Pod](p.pods, uid)
	return o
}

func indexed[T any](i cache.Indexer, uid types.UID) (all []T) {
	found, err := i.ByIndex(byUID, string(uid))
	if err != nil {
		return nil
	}
	for _, o := range found {
		if object, ok := o.(T); ok {
			all = append(all, object)
		}
	}
	return all
}

// places returns the places of all Jobs in the cache, including Jobs of which only pods are
// left.
func (p *part) places() map[types.UID]place {
	all := map[types.UID]place{}
	for _, o := range p.jobs.List() {
		if j, ok := o.(*batchv1.Job); ok {
			all[j.UID] = place{p.namespace, j.Name, j.UID}
		}
	}
	for _, o := range p.pods.List() {
		if pod, ok := o.(*corev1.Pod); ok {
			if at := jobOf(pod); at.uid != "" {
				all[at.uid] = at
			}
		}
	}
	return all
}

// subscribe returns a channel that receives a value after each change of the Job or its pods.
// end ends the subscription.
func (p *part) subscribe(uid types.UID) (changed <-chan struct{}, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[uid] == nil {
		p.waiting[uid] = map[chan struct{}]struct{}{}
	}
	c := make(chan struct{}, 1)
	p.waiting[uid][c] = struct{}{}
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if delete(p.waiting[uid], c); len(p.waiting[uid]) == 0 {
			delete(p.waiting, uid)
		}
	}
}

func (p *part) signal(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range maps.Keys(p.waiting[uid]) {
		select {
		case c <- struct{}{}:
		default: // an unread signal is pending
		}
	}
}
