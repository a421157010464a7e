// Package fire creates the runs of a job that are due. The job's wake-up invokes it.
package fire

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// Handler fires the job of its input, {"tenant", "jobId"}. Its output is an empty object. A
// repeated wake-up has no effect. A failed one is repeated.
func Handler(svc *runs.Firing) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, ref job.Ref) (struct{}, error) {
		if !limit.ValidName(ref.Tenant) || !limit.ValidName(ref.ID) {
			return struct{}{}, lambdakit.InvalidInput{Cause: errors.New("missing or malformed tenant or jobId")}
		}
		return struct{}{}, svc.Fire(ctx, ref)
	})
}
