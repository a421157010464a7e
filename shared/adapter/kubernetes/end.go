package kubernetes

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sortie-dev/sortie/shared/port"
)

// Stop implements port.Runner. It marks the pod and deletes it with the grace. If there is no
// pod, it suspends the Job, so that no pod is created.
func (r *Runner) Stop(ctx context.Context, m port.Machine, grace time.Duration) error {
	return r.end(ctx, m, grace, keyStopped, "stop the machine")
}

// Destroy implements port.Runner. It suspends the Job, deletes its pod with the shortest grace,
// one second, and marks the Job. A kubelet that is already stopping the program keeps the grace
// of the first request. The name is free when the pod has ended. List deletes the Job later.
func (r *Runner) Destroy(ctx context.Context, m port.Machine) error {
	return r.end(ctx, m, 0, keyDestroyed, "destroy the machine")
}

func (r *Runner) end(ctx context.Context, m port.Machine, grace time.Duration, mark, what string) error {
	p, at := r.find(m)
	if p == nil {
		return nil
	}
	if ctx.Err() != nil {
		return failure(ctx, ctx.Err(), what)
	}
	o, err := r.fetch(ctx, at)
	if err != nil {
		return failure(ctx, err, what)
	}
	live := slices.DeleteFunc(slices.Clone(o.pods), ended)
	if o.job != nil && (mark == keyDestroyed && !destroyed(o.job) || len(live) == 0 && !finished(o.job) && !withdrawn(o.job)) {
		if err := r.mark(ctx, at, mark, !finished(o.job)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return failure(ctx, err, what)
		}
	}
	for _, pod := range live {
		if err := r.stopPod(ctx, at, pod, grace); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return failure(ctx, err, what)
		}
	}
	return nil
}

// stopTries is how often stopPod reads a pod that changes meanwhile.
const stopTries = 3

// stopPod marks a pod whose program has not ended, and deletes it. Without the mark it would be
// unknown later whether the program ended on request: the kubelet deletes the pod again at its
// end, which replaces the deletion time.
func (r *Runner) stopPod(ctx context.Context, at place, pod *corev1.Pod, grace time.Duration) error {
	for range stopTries {
		err := r.markPod(ctx, pod)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		o, err := r.fetch(ctx, at)
		if err != nil {
			return err
		}
		now := slices.IndexFunc(o.pods, func(p *corev1.Pod) bool { return p.UID == pod.UID && !ended(p) })
		if now < 0 {
			return nil
		}
		pod = o.pods[now]
	}
	return r.deletePod(ctx, pod, grace)
}

// markPod marks a pod as stopped unless it has changed since it was read.
func (r *Runner) markPod(ctx context.Context, p *corev1.Pod) error {
	if _, marked := p.Annotations[keyStopped]; marked || p.DeletionTimestamp != nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "resourceVersion": p.ResourceVersion, "annotations": map[string]string{keyStopped: r.cfg.Clock.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	_, err = r.cfg.Client.Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// mark sets an annotation of a Job, and suspends it.
func (r *Runner) mark(ctx context.Context, at place, mark string, suspend bool) error {
	change := map[string]any{"metadata": map[string]any{
		"uid": at.uid, "annotations": map[string]string{mark: r.cfg.Clock.Now().UTC().Format(time.RFC3339)},
	}}
	if suspend {
		change["spec"] = map[string]any{"suspend": true}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.cfg.Client.Jobs(at.namespace).Patch(ctx, at.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// release removes the finalizer of a pod.
func (r *Runner) release(ctx context.Context, p *corev1.Pod) error {
	if !slices.Contains(p.Finalizers, finalizer) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "$deleteFromPrimitiveList/finalizers": []string{finalizer},
	}})
	if err != nil {
		return err
	}
	_, err = r.cfg.Client.Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// goneSince maps a Job to the time when this process first saw that it is gone. The times are
// those of its own clock, because the cluster's clock can differ.
type goneSince map[types.UID]time.Time

// due updates the times and returns the places of Jobs that have been gone for keep.
func (g goneSince) due(gone []place, now time.Time, keep time.Duration) (due []place) {
	present := make(map[types.UID]bool, len(gone))
	for _, at := range gone {
		present[at.uid] = true
		since, known := g[at.uid]
		switch {
		case !known:
			g[at.uid] = now
		case now.Sub(since) >= keep:
			due = append(due, at)
		}
	}
	for uid := range g {
		if !present[uid] {
			delete(g, uid)
		}
	}
	return due
}

// reapLimit and reapTime limit the deletions of one List.
const (
	reapLimit = 20
	reapTime  = 5 * time.Second
)

// reap deletes the Jobs that have been gone for Config.KeepFor.
func (r *Runner) reap(ctx context.Context, p *part, gone []place) {
	p.mu.Lock()
	due := p.gone.due(gone, r.cfg.Clock.Now(), r.cfg.KeepFor)
	p.mu.Unlock()
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	for _, at := range due[:min(len(due), reapLimit)] {
		if err := r.remove(ctx, at, p.seen(at.uid)); err != nil && ctx.Err() == nil {
			r.cfg.Log.Info("cannot delete the Job of a machine that is gone; it is tried again", "machine", at.name, "namespace", at.namespace, "error", err)
		}
	}
}
