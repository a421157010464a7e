package stack

import (
	"context"
	"log/slog"
	"slices"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// rawOutputs is a port.Observer that deletes the raw output of a machine when the log of its
// attempt is stored. That log masks the secrets. After a crash in between, the output is
// deleted with the record of the machine.
type rawOutputs struct {
	machines *flymachines.Server
	log      *slog.Logger
}

// Committed implements port.Observer.
func (o rawOutputs) Committed(ctx context.Context, r run.Run, _ []run.Event) {
	if r.State != run.Retrying && !r.State.Terminal() || !r.Attempt.Machine.Known() {
		return
	}
	if r.KeepsLogs() && !slices.Contains(r.Logs, r.Attempt.Number) {
		return // only the machine has the log
	}
	if err := o.machines.DropOutput(r.Attempt.Machine.ID); err != nil {
		o.log.WarnContext(ctx, "cannot delete the output of a machine; it is deleted with its record", "error", err.Error())
	}
}
