package chaos

import (
	"context"
	"errors"
	"net/http"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// fingerprint identifies the content of a file.
type fingerprint struct {
	size int64
	sum  string
}

// Baseline has the fingerprints of all outputs without faults.
type Baseline struct{ files map[workload]fingerprint }

// NewBaseline runs every workload once without faults, in an empty folder.
// foreign is Config.Foreign.
func NewBaseline(ctx context.Context, folder string, clock clock.Clock, foreign []string) (Baseline, error) {
	w, err := newWorld(Config{Folder: folder, Clock: clock, Foreign: foreign, Baseline: Baseline{map[workload]fingerprint{}}})
	if err != nil {
		return Baseline{}, err
	}
	defer w.close()
	if err := w.server.up(ctx); err != nil {
		return Baseline{}, errors.Join(err, errors.New(w.log.String()))
	}
	for _, o := range w.workloads {
		if !o.hasOutput() {
			continue
		}
		task, ok := w.accept(ctx, o, o.String(), http.StatusAccepted, http.StatusOK)
		if ok {
			_, ok = w.follow(ctx, task)
		}
		if ok {
			w.config.Baseline.files[o], ok = w.fingerprintOf(ctx, task)
		}
		if !ok {
			return Baseline{}, errors.New("no baseline output of " + o.String() + ":\n" + w.trace.String() + w.log.String())
		}
	}
	return w.config.Baseline, nil
}
