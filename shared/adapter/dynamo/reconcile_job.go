package dynamo

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// surveyAge is how long a survey is used for the pools of jobs, about the time between two
// sweeps.
const surveyAge = time.Minute

// slotSurvey has the slots of a tenant's living runs in the pools of jobs and keys, read from the
// index at a time. These pools are many and have few runs, so a sweep reads the index once for
// all of them. If a run has changed since then, Reconcile compares it with its record, as it
// does for every difference.
type slotSurvey struct {
	at    time.Time
	pools map[string]map[string]platform.SlotState
	// used has the pools that were reconciled with the survey. Each uses it once.
	used map[string]bool
}

// surveys are the last surveys by tenant. Its lock is held during a survey.
type surveys struct {
	sync.Mutex
	of map[string]*slotSurvey
}

// isSidePool reports whether the pool is that of a job or a key. The names of other
// pools contain no slash.
func isSidePool(pool string) bool { return strings.Contains(pool, "/") }

// surveyed returns the slots of the living runs in the pool of a job or a key.
func (s *Store) surveyed(ctx context.Context, tenant, pool string) (map[string]platform.SlotState, error) {
	s.surveys.Lock()
	defer s.surveys.Unlock()
	last := s.surveys.of[tenant]
	if last == nil || last.used[pool] || s.now().Sub(last.at) > surveyAge {
		last = &slotSurvey{at: s.now(), pools: map[string]map[string]platform.SlotState{}, used: map[string]bool{}}
		if err := s.eachSlotMark(ctx, tenant, func(id string, state platform.SlotState, pool string) {
			if !isSidePool(pool) {
				return
			}
			if last.pools[pool] == nil {
				last.pools[pool] = map[string]platform.SlotState{}
			}
			last.pools[pool][id] = state
		}); err != nil {
			return nil, err
		}
		if s.surveys.of == nil {
			s.surveys.of = map[string]*slotSurvey{}
		}
		s.surveys.of[tenant] = last
	}
	last.used[pool] = true
	return last.pools[pool], nil
}

// eachSlotMark calls do for each slot that a pool counts for a run of the tenant that has not
// ended. It reads the index, which is eventually consistent.
func (s *Store) eachSlotMark(ctx context.Context, tenant string, do func(id string, state platform.SlotState, pool string)) error {
	for n := range listShards {
		query := s.indexQuery(schema.IndexList, attrList, listKey(tenant, living, strconv.Itoa(n)))
		query.Limit = aws.Int32(reconcilePage)
		if err := s.each(ctx, query, func(is item) bool {
			_, id := named(textOf(is[schema.Partition.Name]))
			for mark := range strings.SplitSeq(textOf(is[attrEnd]), "\n") {
				if state, pool, ok := strings.Cut(mark, "#"); ok {
					do(id, platform.SlotState(state), pool)
				}
			}
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}
