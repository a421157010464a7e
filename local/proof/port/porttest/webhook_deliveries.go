package porttest

import (
	"errors"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

func deliveriesFollowProgress(s *webhookTest) {
	w, p := s.create("acme", "one")
	if _, err := s.store.Delivery(s.ctx, w.Ref(), 6); !errors.Is(err, port.ErrNotFound) {
		s.Fatalf("got %v, want ErrNotFound", err)
	}
	stale := p
	pending, sent := s.delivery(6, webhook.Pending), s.delivery(7, webhook.Delivered)
	p.Cursor, p.Pending = 7, 1
	p = s.save(p, pending, sent)
	s.want(w, p)
	wantDelivery := func(d webhook.Delivery) {
		s.Helper()
		got, err := s.store.Delivery(s.ctx, w.Ref(), d.Position)
		s.ok(err)
		s.same(d.Read(), got)
	}
	wantDelivery(pending)
	wantDelivery(sent)
	s.conflict(s.store.SaveDeliveries(s.ctx, stale, s.delivery(6, webhook.Failed), s.delivery(8, webhook.Failed)))
	wantDelivery(pending)
	if _, err := s.store.Delivery(s.ctx, w.Ref(), 8); !errors.Is(err, port.ErrNotFound) {
		s.Fatalf("got %v after a lost race, want ErrNotFound", err)
	}
	// The delivery changes to each of these states: delivered, pending twice, failed.
	for _, state := range []webhook.State{webhook.Delivered, webhook.Pending, webhook.Pending, webhook.Failed} {
		got, err := s.store.Delivery(s.ctx, w.Ref(), 6)
		s.ok(err)
		next := s.delivery(6, state)
		next.Tries = got.Tries + 1
		next.Stored, next.WasPending = got.Stored, got.WasPending
		p = s.save(p, next)
		wantDelivery(next)
		count := 0
		all, err := s.store.Deliveries(s.ctx, w.Ref(), "", math.MaxInt64, 10)
		s.ok(err)
		for _, d := range all {
			if d.Position == 6 {
				count++
			}
		}
		if count != 1 {
			s.Fatalf("got the delivery %d times, want once", count)
		}
	}
	other, _ := s.create("acme", "two")
	if _, err := s.store.Delivery(s.ctx, other.Ref(), 6); !errors.Is(err, port.ErrNotFound) {
		s.Fatalf("got %v for another webhook, want ErrNotFound", err)
	}
}

func pendingInOrder(s *webhookTest) {
	w, p := s.create("acme", "one")
	var want []int64
	for i := range int64(30) {
		position := i*7%30 + 1
		state := webhook.Pending
		if position%3 == 0 {
			state = webhook.Failed
		}
		p = s.save(p, s.delivery(position, state))
	}
	for position := int64(1); position <= 30; position++ {
		if position%3 != 0 {
			want = append(want, position)
		}
	}
	for _, limit := range []int{1, 5, 100} {
		found, err := s.store.PendingDeliveries(s.ctx, w.Ref(), limit)
		s.ok(err)
		s.same(want[:min(limit, len(want))], positions(found))
	}
}

func positions(deliveries []webhook.Delivery) (all []int64) {
	for _, d := range deliveries {
		all = append(all, d.Position)
	}
	return all
}

func logInPages(s *webhookTest) {
	w, p := s.create("acme", "one")
	want := map[webhook.State][]int64{}
	for position := int64(25); position > 0; position-- {
		state := webhook.States()[position%3]
		p = s.save(p, s.delivery(position, state))
		want[state] = append(want[state], position)
		want[""] = append(want[""], position)
	}
	for state, all := range want {
		for _, limit := range []int{1, 4, 25, 26} {
			var got []int64
			for before := int64(math.MaxInt64); ; {
				found, err := s.store.Deliveries(s.ctx, w.Ref(), state, before, limit)
				s.ok(err)
				got = append(got, positions(found)...)
				if len(found) < limit {
					break
				}
				before = found[len(found)-1].Position
			}
			s.same(all, got)
		}
	}
}

func expiredDeliveries(s *webhookTest) {
	w, p := s.create("acme", "one")
	old := s.delivery(6, webhook.Delivered)
	old.ExpiresAt = s.now.Add(time.Second)
	p = s.save(p, old, s.delivery(7, webhook.Delivered), s.delivery(8, webhook.Pending))
	check := func() {
		s.Helper()
		if _, err := s.store.Delivery(s.ctx, w.Ref(), 6); !errors.Is(err, port.ErrNotFound) {
			s.Fatalf("got %v, want ErrNotFound", err)
		}
		found, err := s.store.Deliveries(s.ctx, w.Ref(), "", math.MaxInt64, 10)
		s.ok(err)
		s.same([]int64{8, 7}, positions(found))
	}
	check()
	if n, err := s.store.PurgeDeliveries(s.ctx, s.now, 10); err != nil || n != 0 {
		s.Fatalf("got %d, %v before the expiry, want 0", n, err)
	}
	_, err := s.store.PurgeDeliveries(s.ctx, s.now.Add(time.Minute), 10)
	s.ok(err)
	check()
	// The position can be used again.
	s.save(p, s.delivery(6, webhook.Failed))
	found, err := s.store.Deliveries(s.ctx, w.Ref(), webhook.Failed, math.MaxInt64, 10)
	s.ok(err)
	s.same([]int64{6}, positions(found))
}
