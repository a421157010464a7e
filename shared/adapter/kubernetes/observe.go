package kubernetes

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/port"
)

// Observed returns the machines in the cache, including those that are gone, without a call to
// the API server. With an error, the machines of some namespaces are missing or outdated.
func (r *Runner) Observed(ctx context.Context) (all []port.MachineStatus, err error) {
	var failed []error
	for _, namespace := range r.cfg.Namespaces {
		p := r.parts[namespace]
		if err := r.ready(ctx, p); err != nil {
			failed = append(failed, failure(ctx, err, "watch namespace "+namespace))
			continue
		}
		for _, at := range p.places() {
			all = append(all, p.status(at, r.cfg))
		}
	}
	return all, errors.Join(failed...)
}
