// Package status serves GET /status/{task_id}: the status of a task in the fields of the export
// contract and additional ones.
//
// With ?wait=SECONDS it responds when the state, the attempt or the queue position changes, or
// when the time is up. So clients poll rarely.
package status

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// MaxWait is the longest wait of a request.
const MaxWait = 20 * time.Second

// retryAfter is the poll interval in seconds for clients that do not wait.
const retryAfter = "2"

// Routes returns the route of the status. waitCap limits the wait further, for deployments that
// limit the duration of requests.
func Routes(svc *runs.Queries, waitCap time.Duration) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodGet, Pattern: "/status/{task_id}", Access: httpkit.ForClients, Scope: access.RunsRead,
		Query:  []string{"wait"},
		Handle: func(w http.ResponseWriter, r *http.Request) error { return status(svc, waitCap, w, r) },
	}}
}

func status(svc *runs.Queries, waitCap time.Duration, w http.ResponseWriter, r *http.Request) error {
	seconds, err := httpkit.IntQuery(r, "wait", 0, int(MaxWait.Seconds()), 0)
	if err != nil {
		return err
	}
	wait := min(time.Duration(seconds)*time.Second, waitCap)
	view, err := svc.AwaitChange(r.Context(), httpkit.CallerOf(r.Context()), r.PathValue("task_id"), wait)
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "Task not found: unknown or expired")
	}
	if err != nil {
		return fmt.Errorf("cannot read the status: %w", err)
	}
	answer := api.Status(view)
	text, err := httpkit.JSON(answer)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	etag := `"` + hex.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	header.Set("ETag", etag)
	header.Set("Cache-Control", "no-store")
	if answer.Status == contract.StatusProcessing {
		header.Set("Retry-After", retryAfter)
	}
	if httpkit.Matches(r.Header.Get("If-None-Match"), etag, true) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return httpkit.WriteBytes(w, http.StatusOK, "application/json", text)
}
