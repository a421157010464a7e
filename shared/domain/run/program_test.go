package run_test

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func TestJobTaskIDIsAULIDOfItsTime(t *testing.T) {
	t.Parallel()
	got := spec.JobTaskID(epoch, [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	id, err := ulid.ParseStrict(got[len("job_"):])
	if err != nil || got[:4] != "job_" || !id.Timestamp().Equal(epoch) {
		t.Errorf("got %s (%v), want job_ and a ULID of %s", got, err, epoch)
	}
	if other := spec.JobTaskID(epoch, [10]byte{1}); other == got {
		t.Errorf("got %s for two values of the entropy, want two ids", got)
	}
}

func TestFiringHasOneTaskID(t *testing.T) {
	t.Parallel()
	ref := run.Ref{Tenant: "a", ID: run.FiringID("nightly", epoch)}
	first := run.FiringTaskID(ref, epoch)
	if again := run.FiringTaskID(ref, epoch); again != first {
		t.Errorf("got %s and %s for one firing, want one id", first, again)
	}
	if other := run.FiringTaskID(run.Ref{Tenant: "b", ID: ref.ID}, epoch); other == first {
		t.Errorf("got %s for two tenants, want two ids", first)
	}
}

// TestInputIsKeptAsLongAsTheRecord: the bytes of an input are due for deletion once, with the
// record.
func TestInputIsKeptAsLongAsTheRecord(t *testing.T) {
	t.Parallel()
	r := fresh()
	r.Work.Program = &spec.Program{Input: &spec.Input{Key: "k", Size: 1}}
	r.ExpiresAt = epoch.Add(time.Hour)
	if got := r.BytesDue(); !got.Equal(r.ExpiresAt) || !r.PurgeAt().IsZero() {
		t.Errorf("got bytes due at %s and purge at %s, want %s and none", got, r.PurgeAt(), r.ExpiresAt)
	}
	d, err := run.Decide(r, run.RecordBytesDeleted{}, epoch)
	if err != nil || d.Run.BytesLeft() || !d.Run.PurgeAt().Equal(r.ExpiresAt) {
		t.Errorf("got %+v (%v), want a record without bytes", d.Run.Work.Program.Input, err)
	}
	if r.Work.Program.Input.Deleted {
		t.Error("the earlier record was changed in place, want a copy")
	}
	if d, err = run.Decide(d.Run, run.RecordBytesDeleted{}, epoch); err != nil || d.Changed {
		t.Errorf("got changed %t (%v) for a repeated deletion, want false", d.Changed, err)
	}
}

// TestLargeUpstreamIsStored keeps the stored description of upstream runs as long as the record.
func TestLargeUpstreamIsStored(t *testing.T) {
	t.Parallel()
	of := func(n, outputs int) run.Run {
		r := run.Run{Work: spec.Work{Program: &spec.Program{}}, Graph: &run.Graph{}, State: run.Completed, Attempt: run.Attempt{Number: 1}}
		for i := range n {
			p := run.Parent{Result: []byte(`{}`)}
			if i < outputs {
				p.Output = &run.Upload{}
			}
			r.Graph.Upstream = append(r.Graph.Upstream, p)
		}
		return r
	}
	for n, want := range map[int]bool{0: false, 10: false, 20: true, 50: true} {
		if got := of(n, n).StoresUpstream(); got != want {
			t.Errorf("%d outputs: got %v, want %v", n, got, want)
		}
	}
	if of(50, 0).StoresUpstream() {
		t.Error("got an object for 50 runs without an output, want a variable")
	}
	large := of(50, 50)
	d, err := run.Decide(large, run.RecordBytesDeleted{}, epoch)
	if !large.RecordBytesLeft() || err != nil || d.Run.RecordBytesLeft() || len(large.Graph.Upstream) != 50 {
		t.Errorf("got %v, bytes %v, then %v; want bytes until they are deleted", err, large.RecordBytesLeft(), d.Run.RecordBytesLeft())
	}
	large.Attempt.Number = 0
	if large.RecordBytesLeft() {
		t.Error("got bytes of a run that never started, want none")
	}
}
