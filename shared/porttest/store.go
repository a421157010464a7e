// Package porttest has one conformance suite for each port of package
// orchestrator. Every adapter runs the suite of its port, and so does every
// fake: what a use case may rely on is what the suite holds adapters to.
//
//	func TestStore(t *testing.T) {
//		porttest.Store(t, func(t *testing.T) orchestrator.Store { return open(t) })
//	}
//
// A suite checks the sentences of the port's comments through the port alone.
// It does not look into an adapter, and refuses to know what an adapter promises
// beyond the port; the adapter's own tests do.
package porttest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Store holds a Store to its port. open gives a new, empty store each time, and
// cleans up with t. The store's clock has to stand between the years 2002 and
// 2100: the suite's records live in 2001, and those that have expired did so
// in that year.
func Store(t *testing.T, open func(t *testing.T) port.Store) {
	storeSuite(t, open)
}

// LaggingStore is Store for one that finds runs nobody named by indexes which are
// behind its commits. open gives with it what waits until they have caught up.
func LaggingStore(t *testing.T, open func(t *testing.T) (s port.Store, settle func())) {
	storeSuite(t, func(t *testing.T) port.Store {
		s, settle := open(t)
		return settled{s, settle}
	})
}

func storeSuite(t *testing.T, open func(t *testing.T) port.Store) {
	for name, test := range map[string]func(*storeTest){
		"ACreatedRunIsReadBackWhole":          createdIsReadBack,
		"EveryCommitIsReadBackWhole":          committedIsReadBack,
		"WhatIsNotThereIsNotFound":            notFound,
		"TenantsAreApart":                     tenantsAreApart,
		"AnIDIsGivenOnce":                     idIsGivenOnce,
		"AKnownKeyGivesItsRun":                knownKey,
		"AKeyWithAnotherDigestIsTaken":        takenKey,
		"AKeyIsUsedOnceByMany":                keyRace,
		"AStaleCommitIsAConflict":             staleCommit,
		"OneOfManyCommittersWins":             commitRace,
		"ACommitIsWholeOrNothing":             wholeOrNothing,
		"EventsAreReadInOrder":                eventsInOrder,
		"AListIsNewestFirst":                  listNewestFirst,
		"AListIsReadInPages":                  listInPages,
		"AListIsFilteredByState":              listByState,
		"ACursorThatIsNoneIsRefused":          badCursor,
		"AFullPoolHasNoSlot":                  fullPool,
		"NobodyOvertakesALine":                queueIsNotOvertaken,
		"ALineIsInOrder":                      queueInOrder,
		"ASlotGoesFromOneToTheNext":           slotIsHandedOn,
		"SlotsAreCountedAfterReleases":        releasesCountFirst,
		"WhoLeavesALineIsNotInIt":             leavingTheQueue,
		"ARetryGivesItsSlotBack":              retryGivesBack,
		"APoolWithoutALimitHasNoLeases":       unlimitedPool,
		"ALimitIsTheOneOfTheCommit":           limitOfTheCommit,
		"PoolsAreApart":                       poolsAreApart,
		"ManyShareAFewSlots":                  poolRace,
		"MendFollowsTheRecords":               reconcileFollowsRecords,
		"DueIsTheLongestOverdueFirst":         dueInOrder,
		"WithMachineWalksThroughAll":          withMachine,
		"OutputsAreDueUntilTheyAreDeleted":    outputsDue,
		"AnExpiredRecordIsNotFound":           expiredIsNotFound,
		"AnExpiredRecordGivesItsNamesBack":    expiredNames,
		"PurgeForgetsWhatHasExpired":          purgeForgets,
		"PurgeKeepsARecordWhoseOutputIsThere": purgeKeepsOutputs,
		"ABeatIsOpenedAndClosed":              heartbeatIsOpened,
		"AHeartbeatIsNoted":                   heartbeatIsRecorded,
		"AHeartbeatOfAnotherIsNotTaken":       heartbeatOfAnother,
		"ACommitChangesTheOpenBeat":           heartbeatIsChanged,
		"AVerdictIsOfTheLastHeartbeat":        heartbeatIsEvaluated,
		"AVerdictAndAHeartbeatExclude":        heartbeatRace,
		"TheNewestHeartbeatIsKept":            manyHeartbeats,
		"ABeatGoesWithItsRun":                 heartbeatOfAPurgedRun,
		"TheReceptionIsNoted":                 receptionIsNoted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&storeTest{T: t, ctx: t.Context(), store: open(t), now: time.Date(2001, 2, 3, 4, 5, 6, 789_000_001, time.UTC)})
		})
	}
}

// storeTest is one test's store and its own time, in which its runs live.
type storeTest struct {
	*testing.T
	ctx   context.Context
	store port.Store
	now   time.Time
}

// later moves the test's time on and tells it.
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

// decide is the write that the fact makes of the run.
func (s *storeTest) decide(r run.Run, f run.Fact) port.Write {
	s.Helper()
	d, err := run.Decide(r, f, s.later())
	if err != nil || !d.Changed {
		s.Fatalf("%T in %s: changed %v, %v", f, r.State, d.Changed, err)
	}
	return port.WriteOf(d)
}

// create stores the run, and gives the record as it then is.
func (s *storeTest) create(r run.Run) run.Run {
	s.Helper()
	w := port.WriteOf(run.New(r, s.later()))
	existing, err := s.store.Create(s.ctx, w, nil)
	if err != nil || existing != nil {
		s.Fatalf("create %s: %v, %v", r.ID, existing, err)
	}
	return after(w)
}

// apply commits what the facts make of the run, and gives the record as it
// then is.
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

// after is the record that a write leaves.
func after(w port.Write) run.Run {
	w.Run.Version++
	return w.Run
}

// wantRun has the store give exactly this record.
func (s *storeTest) wantRun(want run.Run) {
	s.Helper()
	got, err := s.store.Load(s.ctx, want.Ref())
	s.ok(err)
	s.same(want, got)
}

// wantNone has the store know nothing of the run.
func (s *storeTest) wantNone(ref run.Ref) {
	s.Helper()
	if got, err := s.store.Load(s.ctx, ref); !isNotFound(err) {
		s.Fatalf("run %s: %+v, %v; want ErrNotFound", ref.ID, got, err)
	}
	if events := s.events(ref); len(events) != 0 {
		s.Fatalf("run %s is not there but has %d events", ref.ID, len(events))
	}
}

// events reads all events of the run and has them numbered without gaps.
func (s *storeTest) events(ref run.Ref) []run.Event {
	s.Helper()
	events, err := s.store.Events(s.ctx, ref, 0, 1000)
	if err != nil && !isNotFound(err) {
		s.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != i+1 {
			s.Fatalf("event %d of run %s has the number %d", i+1, ref.ID, e.Seq)
		}
	}
	return events
}

// same compares what JSON keeps of records and events.
func (s *storeTest) same(want, got any) {
	s.Helper()
	diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(fault.Fault{}), cmpopts.EquateEmpty())
	if diff != "" {
		s.Fatalf("want -, got +\n%s", diff)
	}
}
