package platform_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

func TestPoolChanges(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	created := platform.Pool{Tenant: "acme", ID: "reports"}.Resized(4, 100, "ann", now)
	if created.Limit != 4 || created.QueueLimit != 100 || !created.CreatedAt.Equal(now) || created.UpdatedBy != "ann" {
		t.Fatalf("got %+v, want limits 4 and 100 of ann", created)
	}
	created.Version = 1
	later := now.Add(time.Minute)
	if same := created.Resized(4, 100, "bob", later); !reflect.DeepEqual(same, created) {
		t.Errorf("the same limits: got %+v, want no change", same)
	}
	drained := created.Drain(later.Add(time.Hour), "bob", later)
	drained.Version++
	if !drained.Draining || !drained.DrainDue().Equal(later.Add(time.Hour)) || drained.UpdatedBy != "bob" || !drained.CreatedAt.Equal(now) {
		t.Errorf("got %+v, want a pool that drains for an hour", drained)
	}
	if same := drained.Drain(later.Add(time.Hour), "ann", later); !reflect.DeepEqual(same, drained) {
		t.Errorf("the same deadline: got %+v, want no change", same)
	}
	done := drained
	done.Drained = true
	if !done.DrainDue().IsZero() {
		t.Errorf("drained: got due %s, want never", done.DrainDue())
	}
	if again := done.Drain(later.Add(2*time.Hour), "ann", later); again.Drained || again.DrainDue().IsZero() {
		t.Errorf("a new deadline: got %+v, want it due", again)
	}
	if resized := drained.Resized(8, 0, "ann", later); !resized.Draining || resized.Limit != 8 || resized.QueueLimit != 0 {
		t.Errorf("got %+v, want it to drain with other limits", resized)
	}
	resumed := done.Resume("ann", later)
	if resumed.Draining || resumed.Drained || !resumed.DrainBy.IsZero() {
		t.Errorf("got %+v, want a pool that admits runs", resumed)
	}
	if same := created.Resume("bob", later); !reflect.DeepEqual(same, created) {
		t.Errorf("resume of an open pool: got %+v, want no change", same)
	}
}
