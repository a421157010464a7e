package webhooks

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// ReplayRoutes returns the route that sends events of a stream again.
func ReplayRoutes(svc *delivery.Replays) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodPost, Pattern: "/v1/events:replay", Access: httpkit.ForClients, Scope: access.Backfill,
		Handle: func(w http.ResponseWriter, r *http.Request) error { return replay(svc, w, r) },
	}}
}

func replay(svc *delivery.Replays, w http.ResponseWriter, r *http.Request) error {
	var body contract.ReplayRequest
	key, err := httpkit.DecodeKeyed(w, r, &body)
	if err != nil {
		return err
	}
	in, err := replayOf(body)
	if err != nil {
		return err
	}
	ctx := r.Context()
	accepted, existing, err := svc.Replay(ctx, httpkit.CallerOf(ctx), in, key, httpkit.PayloadDigest(ctx))
	if err != nil {
		return fmt.Errorf("cannot replay the events: %w", err)
	}
	cursor := func(position int64) string { return stream.Cursor{Epoch: accepted.Epoch, Position: position}.String() }
	answer := contract.Replay{
		ID: accepted.ID, Target: body.Target, From: cursor(accepted.From - 1), To: cursor(accepted.To),
		Events: accepted.Total, Sent: accepted.Sent, CreatedAt: accepted.CreatedAt,
	}
	if accepted.More {
		answer.Next = answer.To
	}
	status := http.StatusAccepted
	if existing {
		status = http.StatusOK
	}
	return httpkit.WriteJSON(w, status, answer)
}

// replayOf decodes a request. Faults: InvalidRequest with the field.
func replayOf(body contract.ReplayRequest) (in delivery.ReplayRequest, err error) {
	in = delivery.ReplayRequest{WebhookID: body.Target.WebhookID, Limit: delivery.MaxReplay}
	if body.Limit != nil {
		in.Limit = *body.Limit
	}
	if (body.Target.WebhookID != "") == body.Target.Bus {
		return in, fault.Invalid("target", "target: want webhookId, or bus with the value true")
	}
	if body.From == "" {
		return in, fault.Invalid("from", "missing from, want a cursor, a time or %s", stream.Earliest)
	}
	if in.From, err = place("from", body.From, stream.Earliest); err != nil {
		return in, err
	}
	if body.To != "" {
		if in.To, err = place("to", body.To, stream.Latest); err != nil {
			return in, err
		}
	}
	in.Filter, err = api.BodyFilter(body.Filter)
	if wrong, ok := errors.AsType[*fault.Fault](err); ok {
		wrong.Field = "filter." + wrong.Field
	}
	return in, err
}

// place decodes one end of a range. It returns nil for the end of the stream with that name.
func place(field, text, name string) (*delivery.Place, error) {
	if text == name || text == "0" && name == stream.Earliest {
		return nil, nil
	}
	if c, ok := stream.ParseCursor(text); ok && c.Epoch != "" {
		return &delivery.Place{Epoch: c.Epoch, Position: c.Position}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		return nil, fault.Invalid(field, "%s: malformed, want a cursor, a time such as 2026-11-21T09:00:00Z, or %s", field, name)
	}
	return &delivery.Place{At: at}, nil
}
