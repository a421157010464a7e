package runs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// MachineReports inspects machines that another process reports as changed. A report is a hint;
// only the runner proves the state of a machine. Reports may be repeated, late and out of
// order.
type MachineReports struct{ *Machines }

// NewMachineReports returns the use case.
func NewMachineReports(machines *Machines) *MachineReports { return &MachineReports{machines} }

// ReportedMachine is a machine, with the attempt that the platform shows as its owner.
type ReportedMachine struct {
	RunID   string
	Attempt int
	Machine port.Machine
}

// MachineReportResult is the result of a report about one machine.
type MachineReportResult string

// The results of a report.
const (
	// MachineChanged means that the run has changed. MachineUnchanged means that the run
	// already had the state of the machine, or that the machine is not visible yet.
	MachineChanged   MachineReportResult = "changed"
	MachineUnchanged MachineReportResult = "unchanged"
	// MachineUnknown means that no current attempt of the tenant has the machine.
	MachineUnknown MachineReportResult = "unknown"
)

// Report inspects those of the machines that belong to current attempts of the caller's tenant.
// It commits the state that the runner shows, as a sweep does. The results have the order of
// reported. After an error the caller repeats the whole report.
func (s *MachineReports) Report(ctx context.Context, who port.Identity, reported []ReportedMachine) ([]MachineReportResult, error) {
	results := make([]MachineReportResult, len(reported))
	for i, m := range reported {
		var err error
		if results[i], err = s.report(ctx, run.Ref{Tenant: who.Tenant, ID: m.RunID}, m); err != nil {
			return nil, fmt.Errorf("run %s: %w", m.RunID, err)
		}
	}
	return results, nil
}

func (s *MachineReports) report(ctx context.Context, ref run.Ref, reported ReportedMachine) (MachineReportResult, error) {
	r, err := s.store.Load(ctx, ref)
	if errors.Is(err, port.ErrNotFound) || err == nil && !isOf(reported, r) {
		return MachineUnknown, nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot load the run: %w", err)
	}
	before := r.Version
	ctx = countCalls(ctx, ref)
	m, err := s.runner.Inspect(ctx, reported.Machine)
	switch {
	case errors.Is(err, port.ErrNotFound) && (!r.Attempt.Machine.Known() || s.now().Before(r.Attempt.StartBy)):
		return MachineUnchanged, nil // it may not be visible yet
	case errors.Is(err, port.ErrNotFound):
		m = port.MachineStatus{Machine: reported.Machine, Phase: port.MachineGone}
	case err != nil:
		return "", fmt.Errorf("cannot inspect machine %s: %w", reported.Machine.ID, err)
	case m.Owner != ownerOf(r):
		return MachineUnknown, nil
	}
	if !r.Attempt.Machine.Known() {
		if r, err = s.applyTo(ctx, r, constantFact(run.Swept{Fact: run.MachineCreated{Attempt: reported.Attempt, Machine: m.Machine}})); err != nil {
			return "", err
		}
	}
	shown := s.factOf(ctx, reported.Attempt, m)
	if shown != nil && r.State != run.Terminating && (r.State != run.Running || m.Phase != port.MachineRunning) {
		if r, err = s.applyTo(ctx, r, func(r run.Run) run.Fact { return run.Swept{Fact: shown(r)} }); err != nil {
			return "", err
		}
	}
	if r.Version == before {
		return MachineUnchanged, nil
	}
	return MachineChanged, nil
}

// isOf reports whether a machine belongs to a run's current attempt. If the attempt's machine
// id is not committed yet, it compares the first part of the id, which is the machine's name.
func isOf(m ReportedMachine, r run.Run) bool {
	if !r.State.HasMachine() || r.Queued() || r.Attempt.Number != m.Attempt {
		return false
	}
	if r.Attempt.Machine.Known() {
		return r.Attempt.Machine.Key() == m.Machine.Key()
	}
	name, _, _ := strings.Cut(m.Machine.ID, ".")
	return name == r.Attempt.MachineName
}
