package callback

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// authenticate checks the token of a call of the worker contract.
func authenticate(svc *runs.Workers, r *http.Request) (runs.Bearer, error) {
	text, _ := httpkit.BearerToken(r)
	bearer, err := svc.Authenticate(r.Context(), text, r.PathValue("task_id"))
	if err != nil {
		return bearer, fmt.Errorf("cannot authenticate the worker: %w", err)
	}
	return bearer, nil
}

// admit authenticates a worker and decodes its body.
func admit[T any](svc *runs.Workers, w http.ResponseWriter, r *http.Request) (bearer runs.Bearer, body T, err error) {
	if bearer, err = authenticate(svc, r); err != nil {
		return bearer, body, err
	}
	body, err = decode[T](w, r, bearer)
	return bearer, body, err
}

func acknowledged(at time.Time) contract.Acknowledged {
	return contract.Acknowledged{Acknowledged: true, ServerTime: at}
}

func started(svc *runs.Workers, w http.ResponseWriter, r *http.Request) error {
	bearer, body, err := admit[contract.TaskStarted](svc, w, r)
	if err != nil {
		return err
	}
	at, err := svc.Started(r.Context(), bearer, runs.Caller{Attempt: body.Attempt, WorkerID: body.WorkerID},
		runs.Abilities{HandlesSigterm: body.HandlesSigterm, SendsOutput: body.SendsOutput})
	if err != nil {
		return fmt.Errorf("cannot record the start: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, acknowledged(at))
}

func heartbeat(svc *runs.Workers, w http.ResponseWriter, r *http.Request) error {
	if r.PathValue("task_id") == runs.CanaryTask {
		return canary(svc, w, r)
	}
	bearer, err := authenticate(svc, r)
	if err != nil {
		return err
	}
	body, err := decode[contract.TaskHeartbeat](w, r, bearer)
	if err != nil {
		svc.SignOfLife(r.Context(), bearer)
		return err
	}
	alive, err := svc.Heartbeat(r.Context(), bearer, runs.Caller{Attempt: body.Attempt, WorkerID: body.WorkerID}, body.ProgressPct, body.Message)
	if err != nil {
		return fmt.Errorf("cannot record the heartbeat: %w", err)
	}
	answer := contract.HeartbeatAnswer{Acknowledged: acknowledged(alive.At), TokenRenewal: api.Renewal(alive.Renewed)}
	if alive.Cancel != nil {
		answer.ShouldCancel, answer.CancelReason = true, cmp.Or(*alive.Cancel, contract.CancelReasonUser)
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}

// canary serves a heartbeat that Sortie sends to itself. It ignores the body.
func canary(svc *runs.Workers, w http.ResponseWriter, r *http.Request) error {
	text, _ := httpkit.BearerToken(r)
	at, err := svc.ReceiveCanary(r.Context(), text)
	if err != nil {
		return fmt.Errorf("cannot receive the canary: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, contract.HeartbeatAnswer{Acknowledged: acknowledged(at)})
}

func completed(svc *runs.Workers, w http.ResponseWriter, r *http.Request) error {
	bearer, body, err := admit[contract.TaskCompleted](svc, w, r)
	if err != nil {
		return err
	}
	by := runs.Caller{Attempt: body.Attempt, WorkerID: body.WorkerID}
	final, at, err := svc.Completed(r.Context(), bearer, by, func() (run.Report, error) { return api.Completion(bearer.TaskID, body) })
	if err != nil {
		return fmt.Errorf("cannot record the completion: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, contract.CompletedAnswer{
		Acknowledged: acknowledged(at), FinalState: string(final),
	})
}
