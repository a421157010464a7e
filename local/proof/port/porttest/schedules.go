package porttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// SchedulesHarness is an adapter of port.Schedules without wake-ups.
type SchedulesHarness struct {
	port.Schedules
	// Now is the time of the adapter's clock at the start of the test, in whole seconds.
	Now time.Time
	// Advance advances the clock and returns the jobs of the wake-ups since the previous call,
	// in any order.
	Advance func(d time.Duration) []job.Ref
}

// Schedules is the conformance suite of port.Schedules.
func Schedules(t *testing.T, open func(t *testing.T) SchedulesHarness) {
	t.Helper()
	nightly, other := job.Ref{Tenant: "default", ID: "nightly"}, job.Ref{Tenant: "default", ID: "other"}
	for name, test := range map[string]func(s schedulesTest){
		"a wake-up comes once, at its time": func(s schedulesTest) {
			s.set(nightly, 10*time.Second)
			s.wants(9 * time.Second)
			s.wants(time.Second, nightly)
			s.wants(time.Hour)
		},
		"a time that has passed": func(s schedulesTest) {
			s.set(nightly, -time.Hour)
			s.set(other, 0)
			s.wants(5*time.Second, nightly, other)
			s.wants(time.Hour)
		},
		"fractions of a second are not early": func(s schedulesTest) {
			s.set(nightly, 10*time.Second+time.Millisecond)
			s.wants(10 * time.Second)
			s.wants(time.Second, nightly)
		},
		"a later wake-up replaces one": func(s schedulesTest) {
			s.set(nightly, 10*time.Second)
			s.set(nightly, 20*time.Second)
			s.wants(15 * time.Second)
			s.wants(5*time.Second, nightly)
			s.wants(time.Hour)
		},
		"an earlier wake-up replaces one": func(s schedulesTest) {
			s.set(nightly, 20*time.Second)
			s.set(nightly, 10*time.Second)
			s.set(nightly, 10*time.Second)
			s.wants(12*time.Second, nightly)
			s.wants(time.Hour)
		},
		"wake-ups follow each other": func(s schedulesTest) {
			for range 3 {
				s.set(nightly, 10*time.Second)
				s.wants(10*time.Second, nightly)
			}
			s.wants(time.Hour)
		},
		"removed": func(s schedulesTest) {
			s.remove(nightly)
			s.set(nightly, 10*time.Second)
			s.set(other, 10*time.Second)
			s.remove(nightly)
			s.remove(nightly)
			s.wants(time.Minute, other)
			s.set(nightly, 10*time.Second)
			s.wants(time.Minute, nightly)
		},
		"jobs and tenants are separate": func(s schedulesTest) {
			long := strings.Repeat("n", 62)
			refs := []job.Ref{
				{Tenant: "a", ID: "b-c"},
				{Tenant: "a-b", ID: "c"},
				{Tenant: "a", ID: "b"},
				{Tenant: "b", ID: "b"},
				{Tenant: "a", ID: long + "1"},
				{Tenant: "a", ID: long + "2"},
				{Tenant: long + "1", ID: long + "1"},
			}
			for _, ref := range refs {
				s.set(ref, 10*time.Second)
			}
			s.remove(refs[0])
			s.remove(refs[4])
			s.wants(10*time.Second, slices.Concat(refs[1:4], refs[5:])...)
		},
		"many jobs at one time": func(s schedulesTest) {
			var refs []job.Ref
			var all sync.WaitGroup
			for i := range 50 {
				ref := job.Ref{Tenant: "default", ID: fmt.Sprint("job-", i)}
				refs = append(refs, ref)
				all.Go(func() { s.set(ref, 10*time.Second) })
			}
			all.Wait()
			s.wants(10*time.Second, refs...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			now := h.Now
			test(schedulesTest{t, h, &now})
		})
	}
}

type schedulesTest struct {
	*testing.T
	SchedulesHarness
	now *time.Time
}

func (s schedulesTest) set(ref job.Ref, after time.Duration) {
	s.Helper()
	if err := s.Set(context.Background(), ref, s.now.Add(after)); err != nil {
		s.Errorf("set %v: %v", ref, err)
	}
}

func (s schedulesTest) remove(ref job.Ref) {
	s.Helper()
	if err := s.Remove(context.Background(), ref); err != nil {
		s.Errorf("remove %v: %v", ref, err)
	}
}

// wants advances the clock and checks which jobs have got a wake-up.
func (s schedulesTest) wants(after time.Duration, want ...job.Ref) {
	s.Helper()
	order := func(a, b job.Ref) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID)) }
	*s.now = s.now.Add(after)
	got := slices.SortedFunc(slices.Values(s.Advance(after)), order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		s.Fatalf("got wake-ups of %v, want %v", got, want)
	}
}
