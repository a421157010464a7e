package inferences

import (
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// createLarge is createIn for a request that does not fit into its record. It stores the object
// first, and deletes it if the task was not created. If that is unknown, a sweep does.
func (s *Inference) createLarge(ctx context.Context, r run.Run, in NewTask) (created run.Run, existing bool, err error) {
	if r.TaskID == "" {
		r.TaskID = s.newTaskID()
	}
	input, err := s.prompts.Save(ctx, r.Tenant, r.TaskID, in.stored.Object)
	if err != nil {
		return run.Run{}, false, err
	}
	r.Work = r.Work.WithInput(input)
	created, existing, err = s.createIn(ctx, r, in.IdempotencyKey, in.Digest)
	if existing || fault.Is(err, fault.IdempotencyMismatch) {
		if lost := s.prompts.Delete(ctx, r.Tenant, r.TaskID); lost != nil {
			s.warn(ctx, r, "cannot delete the request of a task that was not created; a sweep does", lost)
		}
	}
	return created, existing, err
}

// Request returns the whole request of a task. Fault: NotFound if it was deleted.
func (s *Inference) Request(ctx context.Context, r run.Run) (*inference.Request, error) {
	work, q := r.Work.Inference, &inference.Request{}
	content := []byte(work.Request)
	if input := r.Input(); input != nil {
		var err error
		if content, err = s.prompts.Read(ctx, *input); err != nil {
			return nil, err
		}
	}
	if len(content) == 0 {
		return nil, fault.New(fault.NotFound, "the request of the task was deleted")
	}
	if err := json.Unmarshal(content, q); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "the stored request cannot be read")
	}
	return q, nil
}
