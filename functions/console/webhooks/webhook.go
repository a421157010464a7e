package webhooks

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
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// HookPage shows a webhook with its deliveries.
var HookPage = page.Page{
	Name: "webhook", Path: "webhooks/{webhook_id}", Scope: access.EventsRead, Query: []string{"cursor", "state", "done"}, Show: showWebhook,
	Actions: []page.Action{
		{Path: "webhooks/{webhook_id}/pause", Scope: access.WebhooksWrite, Do: func(v *page.Visit) (string, error) { return pauseWebhook(v, true) }},
		{Path: "webhooks/{webhook_id}/resume", Scope: access.WebhooksWrite, Do: func(v *page.Visit) (string, error) { return pauseWebhook(v, false) }},
		{Path: "webhooks/{webhook_id}/rotate", Scope: access.WebhooksWrite, Show: rotateSecret},
		{Path: "webhooks/{webhook_id}/test", Scope: access.WebhooksWrite, Show: testWebhook},
		{Path: "webhooks/{webhook_id}/redeliver", Scope: access.WebhooksWrite, Do: redeliver},
		{Path: "webhooks/{webhook_id}/replay", Scope: access.Backfill, Show: replayEvents},
		{Path: "webhooks/{webhook_id}/delete", Scope: access.WebhooksWrite, Do: deleteWebhook},
	},
}

// RecoverPage shows what a redelivery of failed deliveries would send.
var RecoverPage = page.Page{
	Name: "recover", Path: "webhooks/{webhook_id}/recover", Scope: access.WebhooksWrite, Query: []string{"since"}, Show: showRecover,
}

// webhookData is the content of the page.
type webhookData struct {
	Row
	// Tag is the entity tag of the webhook, for changes that must not be repeated.
	Tag        string
	Deliveries []deliveryRow
	State      string
	States     []webhook.State
	Pager      ui.Pager
	Spans      []page.Span
	Key        string
}

// deliveryRow is a delivery in the log.
type deliveryRow struct {
	contract.WebhookDelivery
	Look ui.Look
	// Last is the newest attempt; nil before the first one.
	Last *contract.WebhookAttempt
}

// deliveryLooks are the looks of the states of a delivery.
var deliveryLooks = map[webhook.State]ui.Look{
	webhook.Pending:   {Word: "Pending", Class: "wait", Icon: "clock", Busy: true},
	webhook.Delivered: {Word: "Delivered", Class: "good", Icon: "check"},
	webhook.Failed:    {Word: "Failed", Class: "bad", Icon: "cross"},
}

// webhookAPI returns the path of the webhook of the request in the API.
func webhookAPI(v *page.Visit) string {
	return "/v1/webhooks/" + url.PathEscape(v.Request.PathValue("webhook_id"))
}

func showWebhook(v *page.Visit) (page.View, error) {
	data := webhookData{States: webhook.States(), Spans: page.Spans, Key: v.FormKey("replay")}
	var err error
	if data.Tag, err = v.Tagged(webhookAPI(v), &data.WebhookDetail); err != nil {
		return page.View{}, err
	}
	data.Look, data.State = webhookLook(data.Status), v.Request.URL.Query().Get("state")
	query, filter := url.Values{"limit": {"50"}}, url.Values{}
	if data.State != "" {
		query.Set("state", data.State)
		filter.Set("state", data.State)
	}
	cursor := v.Request.URL.Query().Get("cursor")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var log contract.WebhookDeliveries
	if err := v.Get(webhookAPI(v)+"/deliveries", query, &log); err != nil {
		return page.View{}, err
	}
	data.Deliveries = deliveryRows(log.Deliveries)
	data.Pager = ui.PagerOf(ui.WebhookPath(data.ID), filter, cursor, log.NextCursor)
	return page.View{Title: "Webhook " + cmp.Or(ui.Short(60, data.Description), data.ID), JSON: webhookAPI(v), Command: ui.Command("webhooks", "show", data.ID), Content: data.content}, nil
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
func pauseWebhook(v *page.Visit, paused bool) (string, error) {
	err := v.Patch(webhookAPI(v), map[string]bool{"paused": paused}, nil)
	done := "webhook-resumed"
	if paused {
		done = "webhook-paused"
	}
	return ui.WebhookPath(v.Request.PathValue("webhook_id")) + "?done=" + done, err
}

// rotateSecret adds a secret to a webhook and shows it. The form has the tag of the webhook,
// so a form that is sent twice adds one secret.
func rotateSecret(v *page.Visit) (string, page.View, error) {
	header := http.Header{}
	if tag := v.Request.PostForm.Get("tag"); tag != "" {
		header.Set("If-Match", tag)
	}
	body := contract.RotateWebhookRequest{RevokeOlder: v.Request.PostForm.Get("revoke") != ""}
	response, err := v.Call(http.MethodPost, webhookAPI(v)+"/rotate", nil, body, header)
	if err != nil {
		return "", page.View{}, err
	}
	var changed contract.WebhookDetail
	if err := page.Read(response, &changed); err != nil {
		return "", page.View{}, err
	}
	done := "The webhook has a new secret. The older one signs for another day."
	if body.RevokeOlder {
		done = "The webhook has a new secret. The older ones no longer sign."
	}
	return showSecret(changed, done)
}

// attemptData is the content of the page that shows the result of a test.
type attemptData struct {
	ID      string
	Attempt contract.WebhookAttempt
	Good    bool
}

// testWebhook sends a test event and shows the response.
func testWebhook(v *page.Visit) (string, page.View, error) {
	var a contract.WebhookAttempt
	if err := v.Post(webhookAPI(v)+"/test", struct{}{}, &a); err != nil {
		return "", page.View{}, err
	}
	good := a.Status >= http.StatusOK && a.Status < http.StatusMultipleChoices
	id := v.Request.PathValue("webhook_id")
	return "attempt", page.View{Title: "Test of a webhook", JSON: webhookAPI(v) + "/deliveries", Command: ui.Command("webhooks", "test", id), Content: attemptData{ID: id, Attempt: a, Good: good}.content}, nil
}

// redeliver sends one event again, or all that have failed since a time.
func redeliver(v *page.Visit) (string, error) {
	var body contract.RedeliverRequest
	form := v.Request.PostForm
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
	err := v.Post(webhookAPI(v)+"/redeliver", body, nil)
	return ui.WebhookPath(v.Request.PathValue("webhook_id")) + "?done=redeliver", err
}

// replayData is the content of the page that shows a replay.
type replayData struct {
	ID     string
	Replay contract.Replay
}

// replayEvents sends events of the stream to the webhook again.
func replayEvents(v *page.Visit) (string, page.View, error) {
	form, id := v.Request.PostForm, v.Request.PathValue("webhook_id")
	body := contract.ReplayRequest{
		From: strings.TrimSpace(form.Get("from")), To: strings.TrimSpace(form.Get("to")),
		Filter: contract.EventFilter{Types: page.ListOf(form.Get("types"))}, Target: contract.ReplayTarget{WebhookID: id},
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.Call(http.MethodPost, "/v1/events:replay", nil, body, header)
	if err != nil {
		return "", page.View{}, err
	}
	data := replayData{ID: id}
	if err := page.Read(response, &data.Replay); err != nil {
		return "", page.View{}, err
	}
	return "replay", page.View{Title: "Replay", JSON: webhookAPI(v), Command: ui.Command("events", "replay", "--from", body.From, "--webhook", id), Content: data.content}, nil
}

// deleteWebhook deletes a webhook with its log. The form has the id, typed by the reader.
func deleteWebhook(v *page.Visit) (string, error) {
	if v.Request.PostForm.Get("confirm") != v.Request.PathValue("webhook_id") {
		return "", fault.Invalid("confirm", "the text is not the id of the webhook")
	}
	return "webhooks?done=webhook-deleted", v.Remove(webhookAPI(v))
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

func showRecover(v *page.Visit) (page.View, error) {
	id := v.Request.PathValue("webhook_id")
	text := cmp.Or(v.Request.URL.Query().Get("since"), page.Spans[1].Value)
	at, err := time.Parse(time.RFC3339, text)
	if i := slices.IndexFunc(page.Spans, func(s page.Span) bool { return s.Value == text }); i >= 0 {
		at = v.Now().Add(-page.Spans[i].Length)
	} else if err != nil {
		return page.View{}, fault.Invalid("since", "malformed time, want one such as 2026-11-21T09:00:00Z, or 1h, 24h or 7d")
	}
	at = at.UTC().Truncate(time.Second)
	data := recoverData{ID: id, At: at, Since: at.Format(time.RFC3339)}
	var w contract.WebhookDetail
	if err := v.Get(webhookAPI(v), nil, &w); err != nil {
		return page.View{}, err
	}
	data.Missed = w.Progress.Missed
	var log contract.WebhookDeliveries
	if err := v.Get(webhookAPI(v)+"/deliveries", url.Values{"state": {string(webhook.Failed)}, "limit": {strconv.Itoa(recoverLimit)}}, &log); err != nil {
		return page.View{}, err
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
	return page.View{Title: "Send again what failed", JSON: webhookAPI(v) + "/deliveries?state=failed", Command: ui.Command("webhooks", "recover", id, "--since", data.Since), Content: data.content}, nil
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
