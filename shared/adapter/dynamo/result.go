package dynamo

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// attrEndedAt is the time at which the run of a job's last result ended. The item of the result
// exists as long as its job, without a result at first. It has the first version of a job that
// follows a deleted one.
const attrEndedAt = "endedAt"

// results returns the parts that store the last results of the jobs whose runs end with the
// changes: for each job the result of the run that ended last.
func results(changes []*change) (parts []*part) {
	latest := map[string]*change{}
	var jobs []string
	for _, c := range changes {
		result, ok := c.Result()
		if !ok || c.resultless {
			continue
		}
		in := pkJob(c.Run.Tenant, c.Run.JobID)
		other, twice := latest[in]
		if !twice {
			jobs = append(jobs, in)
		} else if other.Run.EndedAt.After(result.EndedAt) {
			continue
		}
		latest[in] = c
	}
	for _, in := range jobs {
		parts = append(parts, latest[in].result(in, changes))
	}
	return parts
}

// result returns the part that stores the run's result. Its condition fails if a later result
// is stored or the job was deleted, even if a later job has its id.
func (c *change) result(in string, changes []*change) *part {
	result, _ := c.Result()
	p := &part{key: keyOf(in, sortResult)}
	p.set(attrEndedAt, moment(result.EndedAt))
	p.set(attrDoc, document(c.resultDoc))
	p.present(schema.Partition.Name)
	p.conditions = append(p.conditions, "(attribute_not_exists("+p.name(attrEndedAt)+") OR "+p.name(attrEndedAt)+" <= "+p.value(moment(result.EndedAt))+")")
	p.conditions = append(p.conditions, fmt.Sprintf("(attribute_not_exists(%s) OR %[1]s <= %s)", p.name(attrDefinition), p.value(number(c.Run.JobVersion))))
	p.refused = func(context.Context, item) error {
		for _, other := range changes {
			if other.Run.Tenant == c.Run.Tenant && other.Run.JobID == c.Run.JobID {
				other.resultless = true
			}
		}
		return errAgain
	}
	return p
}

// LastResult implements port.Store.
func (s *Store) LastResult(ctx context.Context, tenant, jobID string) (run.Result, error) {
	r, err := s.lastResult(ctx, tenant, jobID)
	return r, wrap(err, "read the last result of job", jobID)
}

func (s *Store) lastResult(ctx context.Context, tenant, jobID string) (r run.Result, err error) {
	is, err := s.get(ctx, keyOf(pkJob(tenant, jobID), sortResult), true)
	if err != nil {
		return r, err
	}
	if is[attrDoc] == nil {
		return r, port.ErrNotFound
	}
	if err := format.Unpack(documentOf(is[attrDoc]), &r); err != nil {
		return r, fault.Wrap(err, fault.Internal, "unreadable stored result")
	}
	return r, nil
}
