package runs

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// SendsOutput implements logs.Workers.
func (s *Workers) SendsOutput(ctx context.Context, bearer token.Bearer, attempt int) (run.Run, error) {
	r, err := s.bearerRun(ctx, bearer)
	if err != nil {
		return r, err
	}
	if attempt == r.Attempt.Number && attempt != bearer.Attempt {
		return r, fault.New(fault.Forbidden, "the token is for another attempt")
	}
	return s.recordOutput(ctx, r, attempt)
}

// StillSends implements logs.Workers.
func (s *Workers) StillSends(ctx context.Context, r run.Run, attempt int) error {
	now, err := s.store.Load(ctx, r.Ref())
	if err != nil {
		return fmt.Errorf("cannot load the run: %w", err)
	}
	_, err = s.recordOutput(ctx, now, attempt)
	return err
}

// recordOutput commits that the worker of an attempt sends output. It returns the newest record.
func (s *Workers) recordOutput(ctx context.Context, r run.Run, attempt int) (run.Run, error) {
	r, err := s.applyTo(ctx, r, constantFact(run.OutputSent{Attempt: attempt}))
	if err != nil {
		return r, s.refused(ctx, r, attempt, err, "record that the worker sends output")
	}
	return r, nil
}

// CancelDelivered implements logs.Workers.
func (s *Workers) CancelDelivered(ctx context.Context, r run.Run, attempt int) {
	s.markCancelDelivered(ctx, r, attempt)
}

// Refused implements logs.Workers.
func (s *Workers) Refused(ctx context.Context, r run.Run, attempt int, f *fault.Fault) error {
	return s.refused(ctx, r, attempt, f, "")
}
