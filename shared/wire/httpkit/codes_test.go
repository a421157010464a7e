package httpkit_test

import (
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// TestCodesOfTheDataPlane checks the status of each code that the contract lists.
func TestCodesOfTheDataPlane(t *testing.T) {
	t.Parallel()
	for code, status := range map[fault.Code]int{
		"ADMISSION_REJECT": 429, "QUEUE_FULL_DROP_LRU": 429, "INVALID_PARAMS": 400, "DEADLINE_UNMET": 400,
		"POOL_UNREADY": 503, "POOL_UNAVAILABLE": 503, "REPLICA_EXHAUSTED": 503,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(http.ResponseWriter, *http.Request) error { return fault.New(code, "no") })
			w, p := b.call(t, http.MethodGet, "/thing/1")
			if w.Code != status || p.Code != string(code) || p.Retryable != (status > 400) {
				t.Errorf("got %d %+v, want %d with the code", w.Code, p, status)
			}
			if wait := w.Header().Get("Retry-After"); (wait == "1") != (status > 400) {
				t.Errorf("got Retry-After %q", wait)
			}
		})
	}
}
