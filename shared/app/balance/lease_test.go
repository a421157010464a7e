package balance

import (
	"errors"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// TestGuestDoesNotKnowTheAddress shows a failure that names the address of a replica to its owner and to a
// guest.
func TestGuestDoesNotKnowTheAddress(t *testing.T) {
	t.Parallel()
	l := &Lease{replica: &replica{key: replicaKey{tenant: "acme", url: "http://gpu.internal:8000"}}, id: "r1"}
	failure := fault.New(fault.PoolUnavailable, "the engine at gpu.internal:8000 does not answer: lookup gpu.internal")
	if got := l.ForTenant("acme", failure); !errors.Is(got, failure) {
		t.Errorf("got %v for the owner, want %v", got, failure)
	}
	got := fault.Of(l.ForTenant("lab", failure))
	if got.Code != fault.PoolUnavailable || strings.Contains(got.Message, "gpu.internal") || !strings.Contains(got.Message, "replica r1") {
		t.Errorf("got %v for a guest, want the replica in place of its address", got)
	}
	if l.ForTenant("lab", nil) != nil {
		t.Error("got a failure, want none")
	}
}
