package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// jobShards is the number of partition keys of jobs in the due index. A firing writes
// four units there, so a thousand firings a second fit.
const jobShards = 4

func jobShard(of job.Ref) string { return shardOf(pkJob(of.Tenant, of.ID), jobShards) }

// jobsKey is the partition key of a tenant's jobs in the list index, in which their ids
// are the sort keys.
func jobsKey(tenant string) string { return within(tenant, "jobs", "") }

// wholeSecond is the first whole second from the time on, in Unix seconds: an entry
// is not due before its job.
func wholeSecond(t time.Time) int64 { return t.Add(time.Second - time.Nanosecond).Unix() }

// Jobs implements port.Store. Its faults are those of List. It may miss the newest
// commits.
func (s *Store) Jobs(ctx context.Context, tenant string, page port.Page) ([]job.Job, string, error) {
	in := listing{kind: "jobs 1", scope: tenant}
	from, err := in.start(page)
	if err != nil {
		return nil, "", err
	}
	jobs, next, err := s.jobs(ctx, tenant, page.Limit, from)
	if err != nil {
		return nil, "", wrap(err, "list the jobs of", tenant)
	}
	if !next {
		return jobs, "", nil
	}
	return jobs, in.cursor([]byte(jobs[len(jobs)-1].ID)), nil
}

// jobs returns at most limit jobs after an id, and whether there are more.
func (s *Store) jobs(ctx context.Context, tenant string, limit int, after []byte) (jobs []job.Job, more bool, err error) {
	q := s.indexQuery(schema.IndexList, attrList, jobsKey(tenant))
	q.Limit = aws.Int32(int32(limit) + 1) //nolint:gosec // the limit of a page is checked
	if after != nil {
		*q.KeyConditionExpression += " AND #sort > :sort"
		q.ExpressionAttributeNames["#sort"] = attrBorn
		q.ExpressionAttributeValues[":sort"] = bytes(after)
	}
	m := s.merge(func(item, item) bool { return false }, []*dynamodb.QueryInput{q})
	for {
		entries, err := m.take(ctx, limit+1-len(jobs), always)
		if err != nil || len(entries) == 0 {
			return jobs, false, err
		}
		found := map[string]item{}
		keys := make([]item, len(entries))
		for i, e := range entries {
			keys[i] = keyOf(textOf(e[schema.Partition.Name]), sortJob)
		}
		for part := range slices.Chunk(keys, batch) {
			if err := s.fetch(ctx, part, true, jobFields, func(is item) error {
				found[textOf(is[schema.Partition.Name])] = is
				return nil
			}); err != nil {
				return nil, false, err
			}
		}
		for _, key := range keys {
			is, exists := found[textOf(key[schema.Partition.Name])]
			if !exists {
				continue // deleted
			}
			j, err := jobOf(is)
			if err != nil {
				return nil, false, err
			}
			if len(jobs) == limit {
				return jobs, true, nil
			}
			jobs = append(jobs, j)
		}
	}
}

// jobFields are the attributes of a job's item that jobOf reads.
var jobFields = []string{schema.Partition.Name, attrDoc}

// JobsDue implements port.Store. It reads the index only, to the second.
func (s *Store) JobsDue(ctx context.Context, now time.Time, after string, limit int) ([]job.Ref, string, error) {
	entries, next, err := s.dueEntries(ctx, now, after, limit, sortJob, jobShards, dueJob)
	if err != nil {
		return nil, "", wrap(err, "read", "the jobs that are due")
	}
	due := make([]job.Ref, 0, len(entries))
	for _, e := range entries {
		tenant, id := named(textOf(e[schema.Partition.Name]))
		due = append(due, job.Ref{Tenant: tenant, ID: id})
	}
	return due, next, nil
}
