// Package inference serves the data plane of inference tasks: POST /v1/tasks and
// GET /v1/tasks/{task_id}/stream.
//
// A 202 means that the task is committed. It starts without a reader. Any number of readers can
// read a stream, from the first event or after the one that a reader saw last, even after the
// end of the task.
package inference

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// headerLastID is the header with the id of the last event that a reader saw.
const headerLastID = "Last-Event-ID"

// Routes returns the routes of inference tasks.
func Routes(svc *inferences.Inference, c clock.Clock) []httpkit.Route {
	return []httpkit.Route{
		{
			Method: http.MethodPost, Pattern: "/v1/tasks", Access: httpkit.ForClients, Scope: access.RunsWrite, Refused: svc.CountRefusal,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return create(svc, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: "/v1/tasks/{task_id}/stream", Access: httpkit.ForReaders, Scope: access.RunsRead,
			Query:  []string{"after"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return stream(svc, c, w, r) },
		},
	}
}

func create(svc *inferences.Inference, w http.ResponseWriter, r *http.Request) error {
	var body contract.TaskRequest
	key, err := httpkit.DecodeKeyedUpTo(w, r, inference.RequestSize, &body)
	if err != nil {
		return err
	}
	task, err := api.NewTask(body)
	if err != nil {
		return err
	}
	if task.Strict, err = httpkit.StrictTrust(r); err != nil {
		return err
	}
	within, err := httpkit.Deadline(r, inference.MostWithin)
	if err != nil {
		return err
	}
	if task.Within == 0 && within > 0 {
		task.Within, task.WithinField = within, httpkit.DeadlineHeader
	}
	ctx := r.Context()
	task.Identity, task.CorrelationID = httpkit.CallerOf(ctx), httpkit.CorrelationID(ctx)
	task.IdempotencyKey, task.PayloadDigest, task.TraceParent = key, httpkit.PayloadDigest(ctx), httpkit.TraceParent(r)
	accepted, err := svc.Create(ctx, task)
	if err != nil {
		return fmt.Errorf("cannot accept the task: %w", err)
	}
	setBudget(w.Header(), accepted.Remaining)
	return httpkit.WriteAccepted(w, accepted.Existing, "/v1/tasks/"+url.PathEscape(accepted.Run.TaskID), api.TaskAccepted(accepted))
}

// stream writes the events of a task as Server-Sent Events until the last one.
func stream(svc *inferences.Inference, c clock.Clock, w http.ResponseWriter, r *http.Request) error {
	after, err := position(r)
	if err != nil {
		return err
	}
	out := httpkit.NewEventStream(w, c)
	err = svc.Follow(r.Context(), httpkit.CallerOf(r.Context()), r.PathValue("task_id"), after,
		func(task run.Run) error {
			left, err := svc.Remaining(r.Context(), task)
			if err != nil {
				return err
			}
			setBudget(w.Header(), left)
			return out.Begin(r)
		}, func(events []inference.Event) error {
			text, err := encode(events)
			if err != nil {
				return err
			}
			return out.Send(text)
		})
	if errors.Is(err, inferences.ErrAllRead) { // with 204, an EventSource does not connect again
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if !out.Begun() {
		return err
	}
	if err != nil && !errors.Is(err, httpkit.ErrNoBody) && r.Context().Err() == nil {
		httpkit.Log(r.Context()).WarnContext(r.Context(), "a stream of tokens was cut off", "error", err.Error())
		panic(http.ErrAbortHandler)
	}
	return nil
}

// setBudget sets headers with the remaining budgets of a task. It omits parts without a limit.
func setBudget(header http.Header, left budget.Limit) {
	for name, part := range map[string]*int64{"X-Budget-Tokens-Remaining": left.Tokens, "X-Budget-Time-Remaining-Ms": left.TimeMS} {
		if part != nil {
			header.Set(name, strconv.FormatInt(*part, 10))
		}
	}
	if left.CostNano != nil {
		header.Set("X-Budget-Cost-Remaining", strconv.FormatFloat(budget.Dollars(*left.CostNano), 'f', -1, 64))
	}
}

// position returns the id of the event after which a stream continues.
func position(r *http.Request) (inference.EventID, error) {
	field, text := "after", r.URL.Query().Get("after")
	if last := r.Header.Get(headerLastID); last != "" {
		field, text = headerLastID, last
	}
	if text == "" {
		return inference.EventID{}, nil
	}
	return inference.ParseEventID(field, text)
}

// encode returns the text of events. Without events it returns a comment.
func encode(events []inference.Event) ([]byte, error) {
	if len(events) == 0 {
		return []byte(": waiting\n\n"), nil
	}
	var text []byte
	for _, e := range events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("cannot encode an event: %w", err)
		}
		text = fmt.Appendf(text, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Name, data)
	}
	return text, nil
}
