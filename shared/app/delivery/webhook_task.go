package delivery

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// TaskWebhooks creates the webhooks of new tasks.
type TaskWebhooks interface {
	// ForTask creates a webhook for the events of one task, which is deleted with the
	// task's record, and returns its secret. If the task has its webhook already, secret is
	// empty. Faults: those of Webhooks.Create.
	ForTask(ctx context.Context, who port.Identity, taskID string, in WebhookSettings) (v WebhookView, secret string, err error)
}

// ForTask implements TaskWebhooks. The webhook may be created before its task, so that it
// misses no event. One whose task does not exist after an hour is deleted.
func (s *Webhooks) ForTask(ctx context.Context, who port.Identity, taskID string, in WebhookSettings) (v WebhookView, secret string, err error) {
	in.Filter.TaskID = taskID
	if err := s.check(in); err != nil {
		return v, "", err
	}
	v, secret, _, err = s.create(ctx, who, webhook.Webhook{ID: webhook.ID(time.Time{}, "task", who.Tenant, taskID), TaskID: taskID}, in)
	return v, secret, err
}

// NoWebhooks is the TaskWebhooks of a deployment that has no deliveries.
type NoWebhooks struct{}

// ForTask implements TaskWebhooks: the fault is Unprocessable.
func (NoWebhooks) ForTask(context.Context, port.Identity, string, WebhookSettings) (WebhookView, string, error) {
	f := fault.New(fault.Unprocessable, "this deployment has no webhooks; want a request without one")
	f.Field = "url"
	return WebhookView{}, "", f
}
