package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// jobShards is the number of partition keys of jobs in the due index. A firing writes
// four units there, so a thousand firings a second fit.
const jobShards = 4

func jobShard(of job.Ref) string { return shardOf(pkJob(of.Tenant, of.ID), jobShards) }

// jobsKey returns the partition key of a tenant's jobs in the list index. Their sort keys are
// their ids.
func jobsKey(tenant string) string { return within(tenant, "jobs", "") }

// wholeSecond returns the first whole second at or after t, in Unix seconds, so that an entry
// is not due before its job.
func wholeSecond(t time.Time) int64 { return t.Add(time.Second - time.Nanosecond).Unix() }

// Jobs implements port.Store. It returns the same faults as List. It may miss the newest
// commits.
func (s *Store) Jobs(ctx context.Context, tenant string, page port.Page) ([]job.Job, string, error) {
	jobs, next, err := documentPage(ctx, s, listing{kind: "jobs 1", scope: tenant}, jobsKey(tenant), sortJob, page, jobOf)
	return jobs, next, wrap(err, "list the jobs of", tenant)
}

// documentPage returns a page of the items under a partition key of the list index, ordered by
// their sort keys in the index. sk is the sort key of the items in the table. decode decodes
// one item.
func documentPage[T any](
	ctx context.Context, s *Store, in listing, key, sk string, page port.Page, decode func(item) (T, error),
) (found []T, next string, err error) {
	from, err := in.start(page)
	if err != nil {
		return nil, "", err
	}
	q := s.indexQuery(schema.IndexList, attrList, key)
	q.Limit = aws.Int32(int32(page.Limit) + 1) //nolint:gosec // the limit of a page is checked
	if from != nil {
		*q.KeyConditionExpression += " AND #sort > :sort"
		q.ExpressionAttributeNames["#sort"] = attrBorn
		q.ExpressionAttributeValues[":sort"] = bytes(from)
	}
	m := s.merge(func(item, item) bool { return false }, []*dynamodb.QueryInput{q})
	var last []byte
	for {
		entries, err := m.take(ctx, page.Limit+1-len(found), always)
		if err != nil || len(entries) == 0 {
			return found, "", err
		}
		stored := map[string]item{}
		keys := make([]item, len(entries))
		for i, e := range entries {
			keys[i] = keyOf(textOf(e[schema.Partition.Name]), sk)
		}
		for part := range slices.Chunk(keys, batch) {
			if err := s.fetch(ctx, part, true, documentFields, func(is item) error {
				stored[textOf(is[schema.Partition.Name])] = is
				return nil
			}); err != nil {
				return nil, "", err
			}
		}
		for _, e := range entries {
			is, exists := stored[textOf(e[schema.Partition.Name])]
			if !exists {
				continue // deleted
			}
			each, err := decode(is)
			if err != nil {
				return nil, "", err
			}
			if len(found) == page.Limit {
				return found, in.cursor(last), nil
			}
			found, last = append(found, each), bytesOf(e[attrBorn])
		}
	}
}

// documentFields are the attributes that jobOf, poolOf and webhookOf read.
var documentFields = []string{schema.Partition.Name, attrDoc, attrSecrets}

// JobsDue implements port.Store. It reads only the index, whose times are whole seconds.
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
