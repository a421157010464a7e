// Package storetest has the conformance suite of port.Store. Every adapter and the fake pass it.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) port.Store { return open(t) })
//	}
//
// The suite checks the contract in the port's comments, only by calls of the port.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Run is the conformance suite of port.Store. open returns a new, empty store for each test
// and registers its cleanup with t. The store's clock must be between the years 2002 and 2100,
// because the suite creates its records in 2001, and some of them expire in that year.
func Run(t *testing.T, open func(t *testing.T) port.Store) {
	storeSuite(t, open)
}

// RunLagging is Run for an adapter whose List, Pools and other searches are eventually
// consistent. open also returns a function that waits until they are up to date.
func RunLagging(t *testing.T, open func(t *testing.T) (s port.Store, settle func())) {
	storeSuite(t, func(t *testing.T) port.Store {
		s, settle := open(t)
		return settled{s, settle}
	})
}

func storeSuite(t *testing.T, open func(t *testing.T) port.Store) {
	for name, test := range storeTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&storeTest{T: t, ctx: t.Context(), store: open(t), now: time.Date(2001, 2, 3, 4, 5, 6, 789_000_001, time.UTC)})
		})
	}
}

// storeTests are the cases of the suite, by their names.
var storeTests = map[string]func(*storeTest){
	"created run":                                   createdIsReadBack,
	"committed run":                                 committedIsReadBack,
	"unknown run":                                   notFound,
	"tenants are isolated":                          tenantsAreIsolated,
	"ids are unique":                                idIsUnique,
	"known idempotency key":                         knownKey,
	"idempotency key with another digest":           takenKey,
	"concurrent creations with one key":             keyRace,
	"stale commit conflicts":                        staleCommit,
	"one of many concurrent commits wins":           commitRace,
	"commits are atomic":                            commitIsAtomic,
	"events are in order":                           eventsInOrder,
	"list is newest first":                          listNewestFirst,
	"list in pages":                                 listInPages,
	"list before a time":                            listBefore,
	"list by state":                                 listByState,
	"invalid cursor":                                badCursor,
	"full pool has no slot":                         fullPool,
	"task is created with its slot and its worker":  beginsAtItsCreation,
	"no overtaking in the queue":                    queueIsNotOvertaken,
	"queue is in order":                             queueInOrder,
	"slot passes to the next run":                   slotPassesOn,
	"releases count before grants":                  releasesCountFirst,
	"position after leaving the queue":              leavingTheQueue,
	"retry releases the slot":                       retryReleasesSlot,
	"pool without a limit has no leases":            unlimitedPool,
	"limit of the grant counts":                     limitOfTheCommit,
	"start limiter is stored":                       limiterIsStored,
	"grant and start limiter are atomic":            limiterAndGrantAreAtomic,
	"many starts share the tokens of one limiter":   tokenRace,
	"warm machine is read back":                     warmIsReadBack,
	"pools with warm machines are due":              warmPoolsAreDue,
	"one of many attempts claims a warm machine":    claimRace,
	"reader of a claim finds it in the run":         claimSeen,
	"account follows its runs":                      accountFollowsRuns,
	"limit of an account is kept":                   limitIsKept,
	"further attempt holds again":                   attemptHoldsAgain,
	"session ends":                                  sessionIsClosed,
	"closed session stays closed":                   closeIsFinal,
	"closed session without a task expires":         closeEndsALimit,
	"expiry of a session moves forward":             expiryMovesForward,
	"known key needs no budget":                     budgetAndKey,
	"accounts of a commit change together":          accountsMoveTogether,
	"many runs share one budget":                    budgetRace,
	"charge is counted once":                        chargeIsCountedOnce,
	"usage is read by day":                          usageByDay,
	"many charges of one usage":                     chargeRace,
	"limit is of a version":                         limitIsOfAVersion,
	"throttled start is queued":                     throttledStartIsQueued,
	"pool without a limit has a queue":              unlimitedPoolHasAQueue,
	"pools are isolated":                            poolsAreIsolated,
	"lowered limit counts when slots pass on":       loweredLimit,
	"restored limit counts when slots pass on":      restoredLimit,
	"many runs share few slots":                     poolRace,
	"reconcile follows the records":                 reconcileFollowsRecords,
	"due returns the longest overdue first":         dueInOrder,
	"due in pages":                                  dueInPages,
	"with machine returns all":                      withMachine,
	"outputs are due until deleted":                 outputsDue,
	"expired record is not found":                   expiredIsNotFound,
	"expired record frees its names":                expiredNames,
	"purge deletes expired records":                 purgeExpired,
	"held runs are kept":                            heldRunsStay,
	"held children are kept":                        heldChildrenStay,
	"purge keeps records with outputs":              purgeKeepsOutputs,
	"heartbeat opens and closes":                    heartbeatIsOpened,
	"heartbeat is recorded":                         heartbeatIsRecorded,
	"heartbeat of another worker":                   heartbeatOfAnother,
	"commit changes the open heartbeat":             heartbeatIsChanged,
	"evaluation requires the last heartbeat":        heartbeatIsEvaluated,
	"evaluation and heartbeat exclude each other":   heartbeatRace,
	"newest heartbeat remains":                      manyHeartbeats,
	"heartbeat is purged with its run":              heartbeatOfAPurgedRun,
	"heartbeat knows the previous one":              previousHeartbeat,
	"overdue heartbeats are found":                  heartbeatsAreDue,
	"reception is recorded":                         receptionIsRecorded,
	"claim is recorded":                             claimIsRecorded,
	"concurrent receptions follow each other":       receptionRace,
	"job is read back":                              jobIsReadBack,
	"versions of a job are kept":                    jobVersionsAreKept,
	"deleted job is gone":                           deletedJobIsGone,
	"versions of a deleted job are not used again":  versionsGoOn,
	"jobs in pages":                                 jobsInPages,
	"due jobs are found":                            jobsAreDue,
	"firing is atomic":                              firingIsAtomic,
	"one of many firings and deletions wins":        firingRace,
	"runs of a job":                                 runsOfAJob,
	"last result is kept":                           lastResultIsKept,
	"last result outlives runs":                     lastResultOutlivesRuns,
	"concurrent ends keep the last result":          resultRace,
	"pool is read back":                             poolIsReadBack,
	"one of many changes of a pool wins":            poolRecordRace,
	"deleted pool is gone":                          deletedPoolIsGone,
	"pools in pages":                                poolsInPages,
	"due drains are found":                          drainsAreDue,
	"record of a pool leaves its leases":            poolRecordLeavesLeases,
	"slots of jobs are limited":                     jobSlotsAreLimited,
	"commit changes slots of pools and jobs":        bothSlots,
	"cancelled run gets no slot of its job":         cancelledRunGetsNoJobSlot,
	"many runs share few slots of a job":            jobSlotRace,
	"reconcile follows the slots of jobs":           reconcileFollowsJobSlots,
	"queue is by priority, round and age":           queueByPriority,
	"line follows the queue":                        lineFollowsTheQueue,
	"runs of a key join one after another":          joinsOfAKey,
	"refused starts of a pool without a limit join": startsRefusedWithoutALimit,
	"each key has one turn in a round":              turnsOfKeys,
	"slots of keys are limited":                     keySlotsAreLimited,
	"many runs share few slots of a key":            keySlotRace,
	"queue of a key is limited":                     keyQueueIsLimited,
	"many runs join a queue with a limit":           keyQueueRace,
	"creation replaces a queued run":                creationReplaces,
	"reconcile follows the slots of keys":           reconcileFollowsKeySlots,
}

// storeTest is a test with its store and its clock.
type storeTest struct {
	*testing.T
	ctx   context.Context
	store port.Store
	now   time.Time
}

// later advances the clock of the test by a second and returns the time.
func (s *storeTest) later() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

func (s *storeTest) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// decide returns the write that applies a fact to the run.
func (s *storeTest) decide(r run.Run, f run.Fact) port.Write {
	s.Helper()
	d, err := run.Decide(r, f, s.later())
	if err != nil || !d.Changed {
		s.Fatalf("%T in %s: got changed %v, %v; want a change", f, r.State, d.Changed, err)
	}
	return port.WriteOf(d)
}

// create stores a new run and returns the stored record.
func (s *storeTest) create(r run.Run) run.Run {
	s.Helper()
	w := port.WriteOf(run.New(r, s.later()))
	existing, err := s.store.Create(s.ctx, w, nil)
	if err != nil || existing != nil {
		s.Fatalf("create %s: got created %v, %v; want true", r.ID, existing, err)
	}
	return after(w)
}

// apply commits the facts one after the other and returns the stored record.
func (s *storeTest) apply(r run.Run, facts ...run.Fact) run.Run {
	s.Helper()
	for _, f := range facts {
		w := s.decide(r, f)
		if err := s.store.Commit(s.ctx, w); err != nil {
			s.Fatalf("commit %T of %s: %v", f, r.ID, err)
		}
		r = after(w)
	}
	return r
}

// after returns the record that the store has after the write.
func after(w port.Write) run.Run {
	w.Run.Version++
	return w.Run
}

// wantRun checks that the store returns exactly this record.
func (s *storeTest) wantRun(want run.Run) {
	s.Helper()
	got, err := s.store.Load(s.ctx, want.Ref())
	s.ok(err)
	s.same(want, got)
}

// wantNone checks that the store has no record and no events of the run.
func (s *storeTest) wantNone(ref run.Ref) {
	s.Helper()
	if got, err := s.store.Load(s.ctx, ref); !isNotFound(err) {
		s.Fatalf("run %s: got %+v, %v; want ErrNotFound", ref.ID, got, err)
	}
	if events := s.events(ref); len(events) != 0 {
		s.Fatalf("run %s: got ErrNotFound and %d events, want 0 events", ref.ID, len(events))
	}
}

// events reads all events of the run and checks that their numbers have no gaps.
func (s *storeTest) events(ref run.Ref) []run.Event {
	s.Helper()
	events, err := s.store.Events(s.ctx, ref, 0, 1000)
	if err != nil && !isNotFound(err) {
		s.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != i+1 {
			s.Fatalf("event %d of run %s: got number %d", i+1, ref.ID, e.Seq)
		}
	}
	return events
}

// same compares records or events.
func (s *storeTest) same(want, got any) {
	s.Helper()
	diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(fault.Fault{}), cmpopts.EquateEmpty())
	if diff != "" {
		s.Fatalf("want -, got +\n%s", diff)
	}
}
