package container

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// List implements port.Runner for the containers with the labels of this Sortie instance.
// Without an engine it lists nothing.
func (r *Runner) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	const what = "list the containers"
	e, err := r.connected(ctx)
	if fault.Is(err, fault.Image) {
		return nil
	}
	if err != nil {
		return failure(ctx, err, what)
	}
	found, err := r.list(ctx, e)
	if err != nil {
		return failure(ctx, err, what)
	}
	for _, c := range found {
		if now := phase(c.State); now != port.MachineGone && !each(listed(c, now)) {
			return nil
		}
	}
	return nil
}

func (r *Runner) list(ctx context.Context, e *engine) ([]container.Summary, error) {
	filters := client.Filters{}.Add("label", keyCluster+"="+r.cfg.Cluster)
	found, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

func listed(c container.Summary, now port.MachinePhase) port.MachineStatus {
	return port.MachineStatus{
		Machine: port.Machine{Runner: kind, ID: c.ID}, Name: c.Labels[keyName], Owner: owner(c.Labels),
		Phase: now, CreatedAt: time.Unix(c.Created, 0).UTC(),
	}
}

// Prune removes the containers whose machines were destroyed longer than Config.KeepFor ago, and
// those that ended by themselves and that it first saw so long ago. It also removes notes about
// containers that the engine does not have. If a container ends while no process runs, the next
// process has Config.KeepFor from its first Prune to record the end.
func (r *Runner) Prune(ctx context.Context) error {
	if !r.found() {
		return nil
	}
	r.pruning.Lock()
	defer r.pruning.Unlock()
	const what = "remove old containers"
	e, err := r.reach(ctx, what)
	if err != nil {
		return err
	}
	found, err := r.list(ctx, e)
	if err != nil {
		return failure(ctx, err, what)
	}
	now := r.cfg.Clock.Now()
	var failed []error
	for id, since := range r.over(found, now) {
		if since.After(now.Add(-r.cfg.KeepFor)) {
			continue
		}
		_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) {
			failed = append(failed, failure(ctx, err, what))
			continue
		}
		failed = append(failed, r.notes.remove(id))
	}
	return errors.Join(failed...)
}

// over returns the ended containers with the time of their destruction, or of the first Prune
// that saw their end. r.pruning is locked.
func (r *Runner) over(found []container.Summary, now time.Time) map[string]time.Time {
	ended := map[string]time.Time{}
	for _, c := range found {
		if phase(c.State) != port.MachineGone {
			continue
		}
		ended[c.ID] = now
		if first, seen := r.ended[c.ID]; seen {
			ended[c.ID] = first
		}
	}
	r.ended = ended
	over := maps.Clone(ended)
	for id, n := range r.notes.all() {
		if !n.DestroyedAt.IsZero() {
			over[id] = n.DestroyedAt
		}
	}
	return over
}
