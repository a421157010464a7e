package tasks

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Headers of the response with a log.
const (
	headerAttempt = "X-Attempt"
	headerEnded   = "X-Log-Ended"
)

// logs serves the log of an attempt unchanged.
func logs(svc *orchestrator.Logs, w http.ResponseWriter, r *http.Request) error {
	attempt, err := httpkit.IntQuery(r, "attempt", 1, math.MaxInt32, 0)
	if err != nil {
		return err
	}
	log, err := svc.Log(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), attempt)
	if err != nil {
		return fmt.Errorf("cannot read the log: %w", err)
	}
	w.Header().Set(headerAttempt, strconv.Itoa(log.Attempt))
	w.Header().Set(headerEnded, strconv.FormatBool(log.Ended))
	return httpkit.WriteBytes(w, http.StatusOK, "text/plain; charset=utf-8", log.Text)
}
