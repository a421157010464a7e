package kubernetes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/sortie-dev/sortie/shared/port"
)

// pollPage is how many objects one call of a poll returns.
const pollPage = 500

// read replaces the cache with the state of the API server. It reads Jobs first: a Job that has
// ended without a pod in the cache would be a machine whose exit is lost.
func (p *part) read(ctx context.Context, cfg Config) error {
	jobs, err := readAll(ctx, cfg, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return cfg.Client.Jobs(p.namespace).List(ctx, o)
	})
	if err != nil {
		return fmt.Errorf("cannot list the Jobs: %w", err)
	}
	pods, err := readAll(ctx, cfg, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return cfg.Client.Pods(p.namespace).List(ctx, o)
	})
	if err != nil {
		return fmt.Errorf("cannot list the pods: %w", err)
	}
	for _, o := range pods {
		if pod, ok := o.(*corev1.Pod); ok {
			p.time(pod, cfg.Clock.Now())
		}
	}
	if err := p.pods.Replace(pods, ""); err != nil {
		return err
	}
	return p.jobs.Replace(jobs, "")
}

// readAll reads the objects of this Sortie instance, in pages.
func readAll(ctx context.Context, cfg Config, list pager.ListPageFunc) (all []any, err error) {
	pages := pager.New(list)
	pages.PageSize = pollPage
	err = pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: labelOwner + "=" + cfg.Orchestrator}, func(o runtime.Object) error {
		less, err := slim(o)
		all = append(all, less)
		return err
	})
	return all, err
}

// look returns the objects of a Job in the cache. If the Runner polls, it reads them from the
// API server, and returns no objects if that does not respond.
func (r *Runner) look(ctx context.Context, p *part, at place) objects {
	if !r.cfg.Poll {
		return p.seen(at.uid)
	}
	o, err := r.fetch(ctx, at)
	if err != nil {
		return objects{}
	}
	return o
}

// observed returns the machine with the objects of look. known is false if look returns no
// objects.
func (r *Runner) observed(ctx context.Context, p *part, at place) (now port.MachineStatus, known bool) {
	o := r.look(ctx, p, at)
	return o.status(r.cfg.Cluster, at, p.patient(at.uid, r.cfg)), o.known() || !r.cfg.Poll
}
