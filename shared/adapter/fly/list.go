package fly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/port"
)

// listed is the number of apps that List reads at a time.
const listed = 8

// List implements port.Runner for the machines of this cluster in all apps. It
// decodes one machine at a time: the machines of whole apps, with their
// configurations, would need much memory.
func (r *Runner) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	stopped := false
	failed := make([]error, len(r.cfg.Apps))
	var group errgroup.Group
	group.SetLimit(listed)
	for i, app := range r.cfg.Apps {
		group.Go(func() error {
			err := r.listApp(reading, app, func(m port.MachineStatus) bool {
				mu.Lock()
				defer mu.Unlock()
				if !stopped && !each(m) {
					stopped = true
					stop()
				}
				return !stopped
			})
			if err != nil {
				failed[i] = failure(ctx, err, "list the machines of app "+app)
			}
			return nil
		})
	}
	_ = group.Wait()
	if stopped {
		return nil
	}
	return errors.Join(failed...)
}

// listApp calls each for the live machines of this cluster in one app, until each
// returns false.
func (r *Runner) listApp(ctx context.Context, app string, each func(port.MachineStatus) bool) error {
	query := url.Values{"metadata." + keyCluster: {r.cfg.Cluster}}.Encode()
	answer, err := r.client.repeat(ctx, http.MethodGet, machinesOf(app)+"?"+query, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	list := json.NewDecoder(answer.Body)
	if first, err := list.Token(); err != nil || first != json.Delim('[') {
		return errors.Join(fmt.Errorf("malformed list of machines: got %v, want an array", first), err)
	}
	for list.More() {
		var m machine
		if err := list.Decode(&m); err != nil {
			return fmt.Errorf("malformed list of machines: %w", err)
		}
		if m.metadata(keyCluster) == r.cfg.Cluster && phase(m.State) != port.MachineGone && !each(r.converted(app, &m)) {
			return nil
		}
	}
	if _, err := list.Token(); err != nil {
		return fmt.Errorf("incomplete list of machines: %w", err)
	}
	return nil
}
