package httpkit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// DeadlineHeader is the header with the deadline of an inference task.
const DeadlineHeader = "X-Deadline-Ms"

// Deadline returns the deadline that a request sets for its inference task, at most longest; 0
// without the header. The fault is DeadlineUnmet with the header.
func Deadline(r *http.Request, longest time.Duration) (time.Duration, error) {
	given := r.Header.Values(DeadlineHeader)
	if len(given) == 0 {
		return 0, nil
	}
	ms, err := strconv.ParseInt(given[0], 10, 64)
	if most := longest.Milliseconds(); err != nil || len(given) > 1 || ms < 1 || ms > most {
		f := fault.New(fault.DeadlineUnmet, "malformed %s, want one whole number of milliseconds from 1 to %d, or no header for the deadline of the pool", DeadlineHeader, most)
		f.Field = DeadlineHeader
		return 0, f
	}
	return time.Duration(ms) * time.Millisecond, nil
}
