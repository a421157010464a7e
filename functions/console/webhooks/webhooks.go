package webhooks

import (
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ListPage lists the webhooks.
var ListPage = page.Page{
	Name: "webhooks", Path: "webhooks", Label: "Webhooks", Scope: access.EventsRead, Query: []string{"cursor", "done"}, Show: showWebhooks,
	Actions: []page.Action{{Path: "webhooks", Scope: access.WebhooksWrite, Show: createWebhook}},
}

// webhookRows is the number of webhooks on a page. The API has the health of a webhook only in
// the webhook itself, so the page reads each.
const webhookRows = 20

// webhooksData is the content of the page.
type webhooksData struct {
	Webhooks []Row
	Pager    ui.Pager
	// Key makes a form that is sent twice create one webhook.
	Key string
}

// Row is a webhook in the list.
type Row struct {
	contract.WebhookDetail
	Look ui.Look
	// Gone: the webhook was deleted while the page was read.
	Gone bool
}

// webhookLooks are the looks of the statuses of a webhook.
var webhookLooks = map[string]ui.Look{
	contract.WebhookActive:   {Word: "Active", Class: "good", Icon: "check"},
	contract.WebhookPaused:   {Word: "Paused", Class: "off", Icon: "stop"},
	contract.WebhookFailing:  {Word: "Failing", Class: "retry", Icon: "again"},
	contract.WebhookDisabled: {Word: "Disabled", Class: "bad", Icon: "cross"},
}

func webhookLook(status string) ui.Look {
	if l, ok := webhookLooks[status]; ok {
		return l
	}
	return ui.Look{Word: status, Class: "off", Icon: "question"}
}

func showWebhooks(v *page.Visit) (page.View, error) {
	query := url.Values{"limit": {strconv.Itoa(webhookRows)}}
	cursor := v.Request.URL.Query().Get("cursor")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var list contract.WebhookList
	if err := v.Get("/v1/webhooks", query, &list); err != nil {
		return page.View{}, err
	}
	rows, err := ReadRows(v, list.Webhooks)
	if err != nil {
		return page.View{}, err
	}
	data := webhooksData{Webhooks: rows, Pager: ui.PagerOf("webhooks", nil, cursor, list.NextCursor), Key: v.FormKey("webhook")}
	return page.View{Title: "Webhooks", JSON: ui.WithQuery("/v1/webhooks", query), Command: ui.Command("webhooks", "list"), Content: data.content}, nil
}

// ReadRows reads webhooks with their health, at the same time.
func ReadRows(v *page.Visit, list []contract.Webhook) ([]Row, error) {
	rows, errs := make([]Row, len(list)), make([]error, len(list))
	var reading sync.WaitGroup
	for i := range list {
		reading.Go(func() {
			rows[i].Webhook = list[i]
			errs[i] = v.Get("/v1/webhooks/"+url.PathEscape(list[i].ID), nil, &rows[i].WebhookDetail)
			rows[i].Look = webhookLook(rows[i].Status)
		})
	}
	reading.Wait()
	for i, err := range errs {
		if rows[i].Gone = page.Unknown(err); err != nil && !rows[i].Gone {
			return nil, err
		}
	}
	return rows, nil
}

// createWebhook creates a webhook and shows its secret.
func createWebhook(v *page.Visit) (string, page.View, error) {
	form := v.Request.PostForm
	settings := contract.WebhookSettings{
		URL: form.Get("url"), EventTypes: page.ListOf(form.Get("eventTypes")), JobID: form.Get("jobId"), Description: form.Get("description"), Ordered: form.Get("ordered") != "",
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.Call(http.MethodPost, "/v1/webhooks", nil, settings, header)
	if err != nil {
		return "", page.View{}, err
	}
	var created contract.WebhookDetail
	if err := page.Read(response, &created); err != nil {
		return "", page.View{}, err
	}
	return showSecret(created, "The webhook is created.")
}

// secretData is the content of the page that shows a secret.
type secretData struct {
	Webhook contract.WebhookDetail
	Done    string
}

// showSecret returns the page that shows the secret of a webhook.
func showSecret(w contract.WebhookDetail, done string) (string, page.View, error) {
	return "secret", page.View{
		Title: "Secret of a webhook", JSON: "/v1/webhooks/" + url.PathEscape(w.ID), Command: ui.Command("webhooks", "show", w.ID), Content: secretData{Webhook: w, Done: done}.content,
	}, nil
}
