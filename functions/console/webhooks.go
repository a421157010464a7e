package console

import (
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// webhooksPage lists the webhooks.
var webhooksPage = page{
	name: "webhooks", path: "webhooks", label: "Webhooks", scope: access.EventsRead, query: []string{"cursor", "done"}, show: showWebhooks,
	actions: []action{{path: "webhooks", scope: access.WebhooksWrite, show: createWebhook}},
}

// webhookRows is the number of webhooks on a page. The API has the health of a webhook only in
// the webhook itself, so the page reads each.
const webhookRows = 20

// webhooksData is the content of the page.
type webhooksData struct {
	Webhooks []webhookRow
	Pager    pager
	// Key makes a form that is sent twice create one webhook.
	Key string
}

// webhookRow is a webhook in the list.
type webhookRow struct {
	contract.WebhookDetail
	Look look
	// Gone: the webhook was deleted while the page was read.
	Gone bool
}

// webhookLooks are the looks of the statuses of a webhook.
var webhookLooks = map[string]look{
	contract.WebhookActive:   {Word: "Active", Class: "good", Icon: "check"},
	contract.WebhookPaused:   {Word: "Paused", Class: "off", Icon: "stop"},
	contract.WebhookFailing:  {Word: "Failing", Class: "retry", Icon: "again"},
	contract.WebhookDisabled: {Word: "Disabled", Class: "bad", Icon: "cross"},
}

func webhookLook(status string) look {
	if l, ok := webhookLooks[status]; ok {
		return l
	}
	return look{Word: status, Class: "off", Icon: "question"}
}

func showWebhooks(v *visit) (view, error) {
	query := url.Values{"limit": {strconv.Itoa(webhookRows)}}
	cursor := v.r.URL.Query().Get("cursor")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var list contract.WebhookList
	if err := v.get("/v1/webhooks", query, &list); err != nil {
		return view{}, err
	}
	rows, err := v.webhookRows(list.Webhooks)
	if err != nil {
		return view{}, err
	}
	data := webhooksData{Webhooks: rows, Pager: pagerOf("webhooks", nil, cursor, list.NextCursor), Key: v.formKey("webhook")}
	return view{Title: "Webhooks", JSON: address("/v1/webhooks", query), Command: command("webhooks", "list"), Content: data.content}, nil
}

// webhookRows reads webhooks with their health, at the same time.
func (v *visit) webhookRows(list []contract.Webhook) ([]webhookRow, error) {
	rows, errs := make([]webhookRow, len(list)), make([]error, len(list))
	var reading sync.WaitGroup
	for i := range list {
		reading.Go(func() {
			rows[i].Webhook = list[i]
			errs[i] = v.get("/v1/webhooks/"+url.PathEscape(list[i].ID), nil, &rows[i].WebhookDetail)
			rows[i].Look = webhookLook(rows[i].Status)
		})
	}
	reading.Wait()
	for i, err := range errs {
		if rows[i].Gone = unknown(err); err != nil && !rows[i].Gone {
			return nil, err
		}
	}
	return rows, nil
}

// createWebhook creates a webhook and shows its secret.
func createWebhook(v *visit) (string, view, error) {
	form := v.r.PostForm
	settings := contract.WebhookSettings{
		URL: form.Get("url"), EventTypes: listOf(form.Get("eventTypes")), JobID: form.Get("jobId"), Description: form.Get("description"), Ordered: form.Get("ordered") != "",
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.call(http.MethodPost, "/v1/webhooks", nil, settings, header)
	if err != nil {
		return "", view{}, err
	}
	var created contract.WebhookDetail
	if err := read(response, &created); err != nil {
		return "", view{}, err
	}
	return v.secret(created, "The webhook is created.")
}

// secretData is the content of the page that shows a secret.
type secretData struct {
	Webhook contract.WebhookDetail
	Done    string
}

// secret returns the page that shows the secret of a webhook.
func (v *visit) secret(w contract.WebhookDetail, done string) (string, view, error) {
	return "secret", view{
		Title: "Secret of a webhook", JSON: "/v1/webhooks/" + url.PathEscape(w.ID), Command: command("webhooks", "show", w.ID), Content: secretData{Webhook: w, Done: done}.content,
	}, nil
}

// webhookPath returns the address of a webhook, below the console.
func webhookPath(id string) string { return "webhooks/" + url.PathEscape(id) }
