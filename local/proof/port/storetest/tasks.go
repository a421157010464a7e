package storetest

import (
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// beginsAtItsCreation creates tasks that acquire a pool slot and have a worker in the commit
// that creates them.
func beginsAtItsCreation(s *storeTest) {
	begun := func(id string, limit int) port.Write {
		r := sample("acme", id)
		r.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m", Request: []byte(`{}`)}}
		d, err := run.NewWith(r, s.later(), admitted("p", limit), run.WorkerContacted{Attempt: 1, WorkerID: "w", Replica: "r1", Started: true})
		s.ok(err)
		return port.WriteOf(d)
	}
	key := &port.IdempotencyKey{Key: "k", Digest: "d"}
	first := begun("a", 1)
	existing, err := s.store.Create(s.ctx, first, key)
	if s.ok(err); existing != nil {
		s.Fatalf("got the existing run %s, want a new one", existing.ID)
	}
	holder := after(first)
	s.wantRun(holder)
	s.same(first.Events, s.events(holder.Ref()))
	s.wantPools(acme("p", 1, 0))
	s.wantHolders("p", holder)
	s.wantHeartbeat(holder.Ref(), *first.Heartbeat.Open)
	if existing, err := s.store.Create(s.ctx, begun("b", 2), key); err != nil || existing == nil || existing.ID != holder.ID {
		s.Fatalf("got %v, %v under a known key, want the first run", existing, err)
	}
	late := begun("b", 1)
	if _, err := s.store.Create(s.ctx, late, nil); !isNoSlot(err) {
		s.Fatalf("got %v in a full pool, want ErrNoSlot", err)
	}
	s.wantNone(late.Run.Ref())
	s.wantNoHeartbeat(late.Run.Ref())
	waiting := s.apply(s.create(sample("acme", "c")), enqueued("p", 1))
	s.apply(holder, cancel(), run.GenerationEnded{Attempt: 1, Stream: &run.StreamEnd{Outcome: run.OutcomeCancelled}}, run.GenerationSettled{Attempt: 1, Final: true})
	s.wantPools(acme("p", 0, 1))
	if _, err := s.store.Create(s.ctx, late, nil); !isNoSlot(err) {
		s.Fatalf("got %v behind a queued run, want ErrNoSlot", err)
	}
	s.apply(waiting, cancel())
	_, err = s.store.Create(s.ctx, late, nil)
	s.ok(err)
	s.wantHolders("p", after(late))
}
