package kubernetes

import (
	"context"
	"fmt"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Client makes the calls of a cluster's API that a Runner needs. The clientset of client-go has
// the same calls, but links the types of every API group, which are a third of a program.
type Client interface {
	Jobs(namespace string) Calls[*batchv1.Job, *batchv1.JobList]
	Pods(namespace string) Calls[*corev1.Pod, *corev1.PodList]
	Secrets(namespace string) Calls[*corev1.Secret, *corev1.SecretList]
	Events(namespace string) Calls[*corev1.Event, *corev1.EventList]
	// Log returns the log of a container of a pod. The caller closes it.
	Log(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)
}

// Calls are the calls about the objects of one kind in one namespace. T is an object and L a
// list. The errors are those of client-go.
type Calls[T, L any] interface {
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// calls implements Client with the REST clients of two API groups.
type calls struct{ core, batch rest.Interface }

// objectTypes are the types that the calls encode and decode. parameters encodes their options.
var (
	objectTypes = schemeOf(batchv1.AddToScheme, corev1.AddToScheme)
	parameters  = runtime.NewParameterCodec(objectTypes)
)

func schemeOf(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	all := runtime.NewScheme()
	metav1.AddToGroupVersion(all, schema.GroupVersion{Version: "v1"})
	for _, group := range add {
		if err := group(all); err != nil {
			panic(err) // the types of one group contradict each other
		}
	}
	return all
}

// newCalls returns the client of a configuration. Both groups share its rate limit and its
// connections.
func newCalls(config *rest.Config) (*calls, error) {
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	group := func(path string, version schema.GroupVersion) (rest.Interface, error) {
		c := rest.CopyConfig(config)
		c.APIPath, c.GroupVersion, c.RateLimiter = path, &version, limiter
		c.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(objectTypes, serializer.NewCodecFactory(objectTypes)).WithoutConversion()
		return rest.RESTClientForConfigAndClient(c, shared)
	}
	core, err := group("/api", corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	batch, err := group("/apis", batchv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("batch: %w", err)
	}
	return &calls{core: core, batch: batch}, nil
}

// Jobs implements Client.
func (c *calls) Jobs(namespace string) Calls[*batchv1.Job, *batchv1.JobList] {
	return callsOf[batchv1.Job, batchv1.JobList](c.batch, "jobs", namespace)
}

// Pods implements Client.
func (c *calls) Pods(namespace string) Calls[*corev1.Pod, *corev1.PodList] {
	return callsOf[corev1.Pod, corev1.PodList](c.core, "pods", namespace)
}

// Secrets implements Client.
func (c *calls) Secrets(namespace string) Calls[*corev1.Secret, *corev1.SecretList] {
	return callsOf[corev1.Secret, corev1.SecretList](c.core, "secrets", namespace)
}

// Events implements Client.
func (c *calls) Events(namespace string) Calls[*corev1.Event, *corev1.EventList] {
	return callsOf[corev1.Event, corev1.EventList](c.core, "events", namespace)
}

// Log implements Client.
func (c *calls) Log(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	return c.core.Get().Namespace(namespace).Name(pod).Resource("pods").SubResource("log").VersionedParams(o, parameters).Stream(ctx)
}
