package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// webhookPage shows a webhook with its deliveries.
var webhookPage = page{
	name: "webhook", path: "webhooks/{webhook_id}", scope: access.EventsRead, query: []string{"cursor", "state", "done"}, show: showWebhook,
	actions: []action{
		{path: "webhooks/{webhook_id}/pause", scope: access.WebhooksWrite, do: func(v *visit) (string, error) { return pauseWebhook(v, true) }},
		{path: "webhooks/{webhook_id}/resume", scope: access.WebhooksWrite, do: func(v *visit) (string, error) { return pauseWebhook(v, false) }},
		{path: "webhooks/{webhook_id}/rotate", scope: access.WebhooksWrite, show: rotateSecret},
		{path: "webhooks/{webhook_id}/test", scope: access.WebhooksWrite, show: testWebhook},
		{path: "webhooks/{webhook_id}/redeliver", scope: access.WebhooksWrite, do: redeliver},
		{path: "webhooks/{webhook_id}/replay", scope: access.Backfill, show: replayEvents},
		{path: "webhooks/{webhook_id}/delete", scope: access.WebhooksWrite, do: deleteWebhook},
	},
}

// recoverPage shows what a redelivery of failed deliveries would send.
var recoverPage = page{
	name: "recover", path: "webhooks/{webhook_id}/recover", scope: access.WebhooksWrite, query: []string{"since"}, show: showRecover,
}

// webhookData is the content of the page.
type webhookData struct {
	webhookRow
	// Tag is the entity tag of the webhook, for changes that must not be repeated.
	Tag        string
	Deliveries []deliveryRow
	State      string
	States     []webhook.State
	Pager      pager
	Spans      []span
	Key        string
}

// deliveryRow is a delivery in the log.
type deliveryRow struct {
	contract.WebhookDelivery
	Look look
	// Last is the newest attempt; nil before the first one.
	Last *contract.WebhookAttempt
}

// deliveryLooks are the looks of the states of a delivery.
var deliveryLooks = map[webhook.State]look{
	webhook.Pending:   {Word: "Pending", Class: "wait", Icon: "clock", Busy: true},
	webhook.Delivered: {Word: "Delivered", Class: "good", Icon: "check"},
	webhook.Failed:    {Word: "Failed", Class: "bad", Icon: "cross"},
}

// webhookAPI returns the path of the webhook of the request in the API.
func (v *visit) webhookAPI() string {
	return "/v1/webhooks/" + url.PathEscape(v.r.PathValue("webhook_id"))
}

func showWebhook(v *visit) (view, error) {
	data := webhookData{States: webhook.States(), Spans: spans, Key: v.formKey("replay")}
	var err error
	if data.Tag, err = v.tagged(v.webhookAPI(), &data.WebhookDetail); err != nil {
		return view{}, err
	}
	data.Look, data.State = webhookLook(data.Status), v.r.URL.Query().Get("state")
	query, filter := url.Values{"limit": {"50"}}, url.Values{}
	if data.State != "" {
		query.Set("state", data.State)
		filter.Set("state", data.State)
	}
	cursor := v.r.URL.Query().Get("cursor")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var log contract.WebhookDeliveries
	if err := v.get(v.webhookAPI()+"/deliveries", query, &log); err != nil {
		return view{}, err
	}
	data.Deliveries = deliveryRows(log.Deliveries)
	data.Pager = pagerOf(webhookPath(data.ID), filter, cursor, log.NextCursor)
	return view{Title: "Webhook " + cmp.Or(short(60, data.Description), data.ID), JSON: v.webhookAPI(), Command: command("webhooks", "show", data.ID), Content: data.content}, nil
}

func deliveryRows(list []contract.WebhookDelivery) (rows []deliveryRow) {
	for _, d := range list {
		row := deliveryRow{WebhookDelivery: d, Look: deliveryLooks[webhook.State(d.State)]}
		row.Look.Word = cmp.Or(row.Look.Word, d.State)
		slices.Reverse(row.Attempts) // the newest first
		if len(row.Attempts) > 0 {
			row.Last = &row.Attempts[0]
		}
		rows = append(rows, row)
	}
	return rows
}

// pauseWebhook pauses or resumes a webhook.
func pauseWebhook(v *visit, paused bool) (string, error) {
	err := v.patch(v.webhookAPI(), map[string]bool{"paused": paused}, nil)
	done := "webhook-resumed"
	if paused {
		done = "webhook-paused"
	}
	return webhookPath(v.r.PathValue("webhook_id")) + "?done=" + done, err
}

// rotateSecret adds a secret to a webhook and shows it. The form has the tag of the webhook,
// so a form that is sent twice adds one secret.
func rotateSecret(v *visit) (string, view, error) {
	header := http.Header{}
	if tag := v.r.PostForm.Get("tag"); tag != "" {
		header.Set("If-Match", tag)
	}
	body := contract.RotateWebhookRequest{RevokeOlder: v.r.PostForm.Get("revoke") != ""}
	response, err := v.call(http.MethodPost, v.webhookAPI()+"/rotate", nil, body, header)
	if err != nil {
		return "", view{}, err
	}
	var changed contract.WebhookDetail
	if err := read(response, &changed); err != nil {
		return "", view{}, err
	}
	done := "The webhook has a new secret. The older one signs for another day."
	if body.RevokeOlder {
		done = "The webhook has a new secret. The older ones no longer sign."
	}
	return v.secret(changed, done)
}

// attemptData is the content of the page that shows the result of a test.
type attemptData struct {
	ID      string
	Attempt contract.WebhookAttempt
	Good    bool
}

// testWebhook sends a test event and shows the response.
func testWebhook(v *visit) (string, view, error) {
	var a contract.WebhookAttempt
	if err := v.post(v.webhookAPI()+"/test", struct{}{}, &a); err != nil {
		return "", view{}, err
	}
	good := a.Status >= http.StatusOK && a.Status < http.StatusMultipleChoices
	id := v.r.PathValue("webhook_id")
	return "attempt", view{Title: "Test of a webhook", JSON: v.webhookAPI() + "/deliveries", Command: command("webhooks", "test", id), Content: attemptData{ID: id, Attempt: a, Good: good}.content}, nil
}

// redeliver sends one event again, or all that have failed since a time.
func redeliver(v *visit) (string, error) {
	var body contract.RedeliverRequest
	form := v.r.PostForm
	if text := form.Get("position"); text != "" {
		position, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fault.Invalid("position", "malformed position, want a whole number")
		}
		body.Position = &position
	} else {
		since, err := time.Parse(time.RFC3339, form.Get("since"))
		if err != nil {
			return "", fault.Invalid("since", "malformed time, want one such as 2026-11-21T09:00:00Z")
		}
		body.FailedSince = &since
	}
	err := v.post(v.webhookAPI()+"/redeliver", body, nil)
	return webhookPath(v.r.PathValue("webhook_id")) + "?done=redeliver", err
}

// replayData is the content of the page that shows a replay.
type replayData struct {
	ID     string
	Replay contract.Replay
}

// replayEvents sends events of the stream to the webhook again.
func replayEvents(v *visit) (string, view, error) {
	form, id := v.r.PostForm, v.r.PathValue("webhook_id")
	body := contract.ReplayRequest{
		From: strings.TrimSpace(form.Get("from")), To: strings.TrimSpace(form.Get("to")),
		Filter: contract.EventFilter{Types: listOf(form.Get("types"))}, Target: contract.ReplayTarget{WebhookID: id},
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.call(http.MethodPost, "/v1/events:replay", nil, body, header)
	if err != nil {
		return "", view{}, err
	}
	data := replayData{ID: id}
	if err := read(response, &data.Replay); err != nil {
		return "", view{}, err
	}
	return "replay", view{Title: "Replay", JSON: v.webhookAPI(), Command: command("events", "replay", "--from", body.From, "--webhook", id), Content: data.content}, nil
}

// deleteWebhook deletes a webhook with its log. The form has the id, typed by the reader.
func deleteWebhook(v *visit) (string, error) {
	if v.r.PostForm.Get("confirm") != v.r.PathValue("webhook_id") {
		return "", fault.Invalid("confirm", "the text is not the id of the webhook")
	}
	return "webhooks?done=webhook-deleted", v.remove(v.webhookAPI())
}

// recoverData is the content of the preview.
type recoverData struct {
	ID, Since string
	At        time.Time
	// Count is the number of failed deliveries of events since the time; More means that there
	// are further ones.
	Count    int
	More     bool
	Examples []deliveryRow
	Missed   []contract.PositionRange
}

// recoverLimit is the number of failed deliveries that the preview reads.
const recoverLimit = 1000

func showRecover(v *visit) (view, error) {
	id := v.r.PathValue("webhook_id")
	text := cmp.Or(v.r.URL.Query().Get("since"), spans[1].Value)
	at, err := time.Parse(time.RFC3339, text)
	if i := slices.IndexFunc(spans, func(s span) bool { return s.Value == text }); i >= 0 {
		at = v.now().Add(-spans[i].Length)
	} else if err != nil {
		return view{}, fault.Invalid("since", "malformed time, want one such as 2026-11-21T09:00:00Z, or 1h, 24h or 7d")
	}
	at = at.UTC().Truncate(time.Second)
	data := recoverData{ID: id, At: at, Since: at.Format(time.RFC3339)}
	var w contract.WebhookDetail
	if err := v.get(v.webhookAPI(), nil, &w); err != nil {
		return view{}, err
	}
	data.Missed = w.Progress.Missed
	var log contract.WebhookDeliveries
	if err := v.get(v.webhookAPI()+"/deliveries", url.Values{"state": {string(webhook.Failed)}, "limit": {strconv.Itoa(recoverLimit)}}, &log); err != nil {
		return view{}, err
	}
	data.More = log.NextCursor != ""
	for _, row := range deliveryRows(log.Deliveries) {
		if happened(row.EventID).Before(at) {
			data.More = false // further ones are older
			continue
		}
		if data.Count++; len(data.Examples) < 5 {
			data.Examples = append(data.Examples, row)
		}
	}
	return view{Title: "Send again what failed", JSON: v.webhookAPI() + "/deliveries?state=failed", Command: command("webhooks", "recover", id, "--since", data.Since), Content: data.content}, nil
}

// happened returns the time of an event, which is in its id.
func happened(eventID string) time.Time {
	text, err := events.ULID(eventID)
	if err != nil {
		return time.Time{}
	}
	id, err := ulid.Parse(text)
	if err != nil {
		return time.Time{}
	}
	return id.Timestamp().UTC()
}
