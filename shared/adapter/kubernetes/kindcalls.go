package kubernetes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// pointer is the pointer to a type of the API.
type pointer[T any] interface {
	*T
	runtime.Object
}

// kindCalls implements Calls like the package gentype of client-go, which would link the fakes
// of client-go and parsers of OpenAPI documents.
type kindCalls[T, L any, PT pointer[T], PL pointer[L]] struct {
	client          rest.Interface
	name, namespace string
}

func callsOf[T, L any, PT pointer[T], PL pointer[L]](client rest.Interface, name, namespace string) Calls[PT, PL] {
	return &kindCalls[T, L, PT, PL]{client, name, namespace}
}

// about adds the kind, the namespace and the options to a request.
func (r *kindCalls[T, L, PT, PL]) about(request *rest.Request, options runtime.Object) *rest.Request {
	return request.UseProtobufAsDefaultIfPreferred(true).Namespace(r.namespace).Resource(r.name).VersionedParams(options, parameters)
}

// Create implements Calls.
func (r *kindCalls[T, L, PT, PL]) Create(ctx context.Context, object PT, o metav1.CreateOptions) (PT, error) {
	created := PT(new(T))
	return created, r.about(r.client.Post(), &o).Body(object).Do(ctx).Into(created)
}

// Get implements Calls.
func (r *kindCalls[T, L, PT, PL]) Get(ctx context.Context, name string, o metav1.GetOptions) (PT, error) {
	found := PT(new(T))
	return found, r.about(r.client.Get(), &o).Name(name).Do(ctx).Into(found)
}

// List implements Calls.
func (r *kindCalls[T, L, PT, PL]) List(ctx context.Context, o metav1.ListOptions) (PL, error) {
	found := PL(new(L))
	return found, r.about(r.client.Get(), &o).Timeout(timeout(o)).Do(ctx).Into(found)
}

// Watch implements Calls.
func (r *kindCalls[T, L, PT, PL]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return r.about(r.client.Get(), &o).Timeout(timeout(o)).Watch(ctx)
}

// Patch implements Calls.
func (r *kindCalls[T, L, PT, PL]) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string,
) (PT, error) {
	patched := PT(new(T))
	return patched, r.about(r.client.Patch(kind), &o).Name(name).SubResource(subresources...).Body(patch).Do(ctx).Into(patched)
}

// Delete implements Calls. The options are the body of the request.
func (r *kindCalls[T, L, PT, PL]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	request := r.client.Delete().UseProtobufAsDefaultIfPreferred(true)
	return request.Namespace(r.namespace).Resource(r.name).Name(name).Body(&o).Do(ctx).Error()
}

func timeout(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*o.TimeoutSeconds) * time.Second
}
