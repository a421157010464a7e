package httpkit_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestBusyServerNamesADelay covers each fault that clients get as 429 or 503.
func TestBusyServerNamesADelay(t *testing.T) {
	t.Parallel()
	faults := []*fault.Fault{
		(&port.NoBudget{Shortage: budget.Shortage{Scope: budget.ScopeTenant, Part: budget.Tokens}}).Fault(),
		(&port.NoBudget{Shortage: budget.Shortage{Scope: budget.ScopeTenant, Part: budget.Tokens, Held: 1}}).Fault(),
	}
	final := fault.New(fault.PoolUnavailable, "no")
	final.Retryable = false
	faults = append(faults, final)
	for _, code := range fault.Codes() {
		faults = append(faults, fault.New(code, "no"))
	}
	tooMany := 0
	for _, f := range faults {
		p := httpkit.ProblemOf(f)
		if p.Body.Status != http.StatusTooManyRequests && p.Body.Status != http.StatusServiceUnavailable {
			continue
		}
		seconds, err := strconv.Atoi(p.Header.Get("Retry-After"))
		ms, err2 := strconv.Atoi(p.Header.Get("X-Backoff-Ms"))
		if err != nil || err2 != nil || seconds < 1 || ms < 1 || ms > 1000*seconds {
			t.Errorf("%v: got the headers %v, want Retry-After and X-Backoff-Ms", f, p.Header)
		}
		if (p.Header.Get("X-Should-Retry") == "false") != !f.Retryable || p.Body.Retryable != f.Retryable {
			t.Errorf("%v: got %+v with %v, want the same as of the fault", f, p.Body, p.Header)
		}
		if p.Body.Status == http.StatusServiceUnavailable {
			continue
		}
		tooMany++
		if p.Body.Retriable == nil || *p.Body.Retriable != f.Retryable || p.Body.RetryAfterMS != int64(ms) || p.Body.PolicyLabel == "" {
			t.Errorf("%v: got %+v with %v", f, p.Body, p.Header)
		}
	}
	if tooMany < 5 {
		t.Errorf("got %d faults with 429, want at least 5", tooMany)
	}
}

// TestEachRefusalIsReported uses a route whose handler returns a fault of each code.
func TestEachRefusalIsReported(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		for _, accepted := range []bool{false, true} {
			b := setup(t, func(_ http.ResponseWriter, r *http.Request) error {
				if accepted {
					httpkit.EndWrite(r.Context())
				}
				return fault.New(code, "no")
			})
			answer, p := b.call(t, http.MethodPost, "/thing/1")
			want := []fault.Code{fault.Code(p.Code)}
			if accepted {
				want = nil
			}
			if got := *b.refused; !slices.Equal(got, want) || answer.Code < 400 {
				t.Errorf("%s, accepted %t: got the refusals %v of status %d, want %v", code, accepted, got, answer.Code, want)
			}
		}
	}
}
