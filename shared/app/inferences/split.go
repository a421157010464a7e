package inferences

import (
	"context"
	"encoding/hex"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// splitRun returns the run of a request for a model with a split or shadow traffic, with its task id. The id of the task decides which
// model serves it. The model itself does if the other one cannot serve the request: it is retired, has
// no pool, has not the workload or a feature, or the prompt is too long for it.
func (s *Inference) splitRun(ctx context.Context, in NewTask, model catalog.Model) (run.Run, error) {
	id := s.newTaskID()
	if share, ok := model.ShareOf(id); ok {
		asked := in
		asked.Model = share.Model
		r, err := s.sharedRun(ctx, asked)
		if err == nil {
			work := r.Work.Inference
			work.Served, work.Model, work.SplitPercent = work.ServedModel(), in.Model, share.Percent
			r.TaskID = id
			return r, nil
		}
		if !cannotServe(err) {
			return r, err
		}
	}
	r, err := s.runOf(ctx, in, model)
	r.TaskID = id
	return r, err
}

// cannotServe reports whether an error says that a model cannot serve a request. Other errors, such as
// those of the store, say nothing about the model.
func cannotServe(err error) bool {
	f := fault.Of(err)
	return f != nil && f.Code != fault.Unavailable && f.Code != fault.Internal
}

// newTaskID returns the id of a new task.
func (s *Inference) newTaskID() string {
	var entropy [10]byte
	_, _ = hex.Decode(entropy[:], []byte(s.hex(len(entropy)))) // it is hexadecimal
	return spec.InferenceTaskID(s.now(), entropy)
}

// sharedRun returns the run of a request for the model of a share, which the caller's token must
// allow too.
func (s *Inference) sharedRun(ctx context.Context, in NewTask) (run.Run, error) {
	if err := in.Identity.NeedModel(in.Model); err != nil {
		return run.Run{}, err
	}
	model, err := s.model(ctx, in)
	if err != nil {
		return run.Run{}, err
	}
	return s.runOf(ctx, in, model)
}
