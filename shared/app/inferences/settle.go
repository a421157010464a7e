package inferences

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// settleEnded ends the attempt of a run whose stream has ended, and settles the run after the
// engine has freed its slot.
func (s *endings) settleEnded(ctx context.Context, r run.Run, replica *balance.Lease) error {
	used := r.Generation
	r, same, err := s.reloaded(ctx, r)
	if err != nil {
		return err
	}
	if !same { // another attempt writes the stream
		replica.AwaitFree(ctx)
		return nil
	}
	last, err := s.answers.Conclude(ctx, r, answer.EndOf(r))
	if err != nil {
		return err
	}
	r.Generation = used
	if err := s.commitStreamEnd(ctx, r, last); err != nil {
		return err
	}
	return s.settleNow(ctx, r, replica.AwaitFree)
}

// settleNow loads a run and settles it, unless it has another attempt now. free is as for
// settle.
func (s *endings) settleNow(ctx context.Context, r run.Run, free func(context.Context)) error {
	r, same, err := s.reloaded(ctx, r)
	switch {
	case err != nil:
		return err
	case same:
		return s.settle(ctx, r, free)
	case free != nil:
		free(ctx)
	}
	return nil
}

// reloaded loads a run. same reports that the run still has the same attempt, which may have
// ended.
func (s *endings) reloaded(ctx context.Context, of run.Run) (r run.Run, same bool, err error) {
	if r, err = s.store.Load(ctx, of.Ref()); err != nil {
		return r, false, fmt.Errorf("cannot load the task: %w", err)
	}
	return r, r.Attempt.Number == of.Attempt.Number && (r.State.HasMachine() || r.State.Terminal()), nil
}

// commitStreamEnd commits the end of an attempt with the outcome in the last record of its
// stream.
func (s *endings) commitStreamEnd(ctx context.Context, r run.Run, last inference.Record) error {
	end, used := answer.StreamEnd(last)
	used = used.Merged(r.Generation)
	_, err := s.runs.Apply(ctx, r, run.GenerationEnded{Attempt: r.Attempt.Number, Stream: &end, Generation: &used})
	return err
}

// fail commits the failure of an attempt. It does not end the stream; settle does.
func (s *endings) fail(ctx context.Context, r run.Run, why *fault.Fault) error {
	_, err := s.runs.Apply(ctx, r, run.GenerationEnded{Attempt: r.Attempt.Number, Fault: why})
	return err
}

// isLastAttempt reports whether no attempt would follow the failed one.
func (s *endings) isLastAttempt(r run.Run, settled run.GenerationSettled) bool {
	d, err := run.Decide(r, settled, s.now())
	return err == nil && d.Run.State.Terminal()
}

// transcript stores the transcript of a task as an artifact of kind trace, and returns its id.
// It may be repeated. The id is empty for an answer that is no completion, for one that must
// not be read later, and for a transcript that cannot be an artifact, for example because it is
// too large.
func (s *endings) transcript(ctx context.Context, r run.Run) (id string, err error) {
	if r.Work.Inference.Workload != string(port.WorkloadCompletion) || r.HidesAnswer() {
		return "", nil
	}
	text, err := s.answers.Transcript(ctx, r)
	if err != nil {
		return "", err
	}
	owner := ""
	if mayBeDeleted(r) {
		owner = r.TaskID
	}
	metadata := map[string]string{"engine": r.Work.Inference.Engine, "pool_id": r.Slot.Pool}
	if g := r.Generation; g != nil {
		metadata["engine_version"], metadata["replica_id"] = g.EngineVersion, g.Replica
	}
	tags := []string{"sse", "stream", "task:" + r.TaskID}
	if session := r.Work.Inference.SessionID; session != "" {
		tags = append(tags, "session:"+session)
	}
	a, _, err := s.artifacts.Create(ctx, r.Tenant, r.CreatedBy.Name(), artifact.Draft{Kind: "trace", Content: text.Content(owner), Tags: tags, Metadata: jsonOf(metadata)})
	switch {
	case fault.Is(err, fault.TooLarge), fault.Is(err, fault.InvalidRequest):
		s.warn(ctx, r, "the task ends without a transcript", err) // it would be refused again, and the task keep its slot
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot store the transcript: %w", err)
	}
	return a.ID, nil
}

// mayBeDeleted reports whether the answer of a task can be deleted before its transcript expires:
// that of a response, and in a tenant with a retention of answers. The transcript then has the id of the
// task, so that no other task has the same artifact.
func mayBeDeleted(r run.Run) bool {
	var q struct {
		Front json.RawMessage `json:"front"`
	}
	_ = json.Unmarshal(r.Work.Inference.Request, &q) // without it there is no response
	return r.Work.Inference.KeptFor > 0 || len(q.Front) > 0
}

// logServed logs the end of a request to an engine.
func (s *answering) logServed(ctx context.Context, t *serving, err error) {
	r, g := t.run, t.used
	r.Generation = &g
	attrs := append(about.Run(&r), slog.String("replica", g.Replica), slog.Int("tokens_out", g.TokensOut), slog.Int64("decode_ms", g.DecodeMS))
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "the engine's answer has ended", attrs...)
}
