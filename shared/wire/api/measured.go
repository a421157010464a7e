package api

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// seconds returns a duration in seconds, rounded to milliseconds, such as 3.829.
func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

// measured returns the wire form of a run's metrics.
func measured(r run.Run, m run.Metrics) contract.Measured {
	in := func(phase run.Phase) float64 { return seconds(m.Phases[phase]) }
	figures := contract.Measured{
		RunID: r.ID, JobID: r.JobID, ScheduledAt: r.ScheduledAt,
		PreRunSeconds: in(run.PhasePreRun), QueueSeconds: in(run.PhaseQueue), ConstraintCheckSeconds: in(run.PhaseConstraintCheck),
		ActionExecutionSeconds: in(run.PhaseActionExecution), ContainerCreationSeconds: in(run.PhaseContainerCreation),
		ExecutionSeconds: in(run.PhaseExecution), TerminationSeconds: in(run.PhaseTermination), RetryDelaySeconds: in(run.PhaseRetryDelay),
		TotalSeconds: seconds(m.Total), StateTransitionCount: m.StateTransitions, StateTransitionTimestamps: map[string]time.Time{},
		ConstraintsChecked: m.ConstraintsChecked, ConstraintsViolated: m.ConstraintsViolated,
		ActionsExecuted: m.ActionsExecuted, ActionsFailed: m.ActionsFailed, RetryAttempt: m.RetryAttempt, MaxRetries: m.MaxRetries,
		StartLatencySeconds: seconds(m.StartLatency), ExitCode: m.ExitCode, HeartbeatsSent: m.Heartbeats,
		KubernetesAPICalls: m.Calls[platform.RunnerKubernetes],
		Success:            m.Success, Skipped: m.Skipped, ErrorMessage: m.ErrorMessage,
	}
	for _, n := range m.Calls {
		figures.PlatformAPICalls += n
	}
	for state, at := range m.Entered {
		figures.StateTransitionTimestamps[string(state)] = at
	}
	if m.State.Terminal() {
		figures.FinalState = string(m.State)
	}
	return figures
}
