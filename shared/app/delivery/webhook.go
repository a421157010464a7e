package delivery

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Webhooks serves clients that subscribe to events with webhooks.
type Webhooks struct {
	*Subscriptions
	sender *hook.Sender
	policy guard.Policy
}

// NewWebhooks returns Webhooks with the addresses that the policy permits.
func NewWebhooks(s *Subscriptions, sender *hook.Sender, policy guard.Policy) *Webhooks {
	return &Webhooks{s, sender, policy}
}

// WebhookSettings are the settings of a webhook that a client sets.
type WebhookSettings struct {
	URL         string
	Filter      events.Filter
	Description string
	Paused      bool
	Ordered     bool
	RateLimit   int
}

// SettingsOf returns the settings of a webhook.
func SettingsOf(w webhook.Webhook) WebhookSettings {
	return WebhookSettings{URL: w.URL, Filter: w.Filter, Description: w.Description, Paused: w.Paused, Ordered: w.Ordered, RateLimit: w.RateLimit}
}

// WebhookView is a webhook with the progress of its deliveries.
type WebhookView struct {
	webhook.Webhook
	Progress webhook.Progress
}

// WebhookTag is the entity tag of a version of a webhook, with its quotes.
func WebhookTag(w webhook.Webhook) string {
	return fmt.Sprintf(`"%d-%x"`, w.Version, w.CreatedAt.UnixNano())
}

func noWebhook() error { return fault.New(fault.NotFound, "no such webhook") }

// check returns the fault of invalid settings.
func (s *Webhooks) check(in WebhookSettings) error {
	if in.URL == "" {
		return fault.Invalid("url", "missing url, want an https URL")
	}
	if err := s.policy.CheckURL(in.URL); err != nil {
		f := fault.New(fault.Unprocessable, "url: %v", err)
		f.Field = "url"
		return f
	}
	if err := in.Filter.Check(); err != nil {
		return fault.Invalid("eventTypes", "eventTypes: %v", err)
	}
	if err := in.Filter.Label.Check(); err != nil {
		return fault.Invalid("label", "label: malformed selector: %v", err)
	}
	for field, value := range map[string]string{
		"projectId": in.Filter.ProjectID, "jobId": in.Filter.JobID, "taskId": in.Filter.TaskID, "batchId": in.Filter.BatchID, "parentRunId": in.Filter.ParentRunID,
	} {
		if utf8.RuneCountInString(value) > limit.FileName || !limit.Printable(value) {
			return fault.Invalid(field, "malformed %s, want at most %d printable characters", field, limit.FileName)
		}
	}
	if utf8.RuneCountInString(in.Description) > webhook.MaxDescription || !utf8.ValidString(in.Description) || strings.Contains(in.Description, "\x00") {
		return fault.Invalid("description", "malformed description, want at most %d characters of UTF-8, without NUL", webhook.MaxDescription)
	}
	if in.RateLimit < 0 || in.RateLimit > webhook.MaxRate {
		return fault.Invalid("rateLimit", "rateLimit: %d is out of range, want 0 (no limit) to %d attempts per second", in.RateLimit, webhook.MaxRate)
	}
	return nil
}

// newSecret returns a new random secret.
func (s *Webhooks) newSecret() (string, error) {
	var key [32]byte
	if _, err := hex.Decode(key[:], []byte(s.random.Hex(len(key)))); err != nil {
		return "", fmt.Errorf("cannot create a secret: %w", err)
	}
	return hook.NewSecret(key), nil
}

// Create stores a webhook for the events that the stream gets from now on. secret is its
// secret. existing reports that the idempotency key was used for the same request; then nothing
// is written and secret is empty. An empty key means no key. digest identifies the request.
// Faults: InvalidRequest and Unprocessable with the field, IdempotencyMismatch.
func (s *Webhooks) Create(ctx context.Context, who port.Identity, in WebhookSettings, key, digest string) (v WebhookView, secret string, existing bool, err error) {
	if err := change.CheckKey(key); err != nil {
		return v, "", false, err
	}
	if err := s.check(in); err != nil {
		return v, "", false, err
	}
	id := webhook.ID(s.now(), s.random.Hex(16))
	if key != "" {
		id = webhook.ID(keyTime(key), "key", who.Tenant, key)
	}
	return s.create(ctx, who, webhook.Webhook{ID: id, Digest: digest}, in)
}

// keyTime returns the time in an idempotency key that is a ULID or a version 7 UUID. It is zero
// for other keys. So the id of a webhook depends only on its key.
func keyTime(key string) time.Time {
	if id, err := ulid.ParseStrict(key); err == nil {
		return ulid.Time(id.Time())
	}
	if id, err := uuid.Parse(key); err == nil && id.Version() == 7 {
		seconds, nanoseconds := id.Time().UnixTime()
		return time.Unix(seconds, nanoseconds)
	}
	return time.Time{}
}

// create stores a webhook under its id. existing reports that the id is used.
func (s *Webhooks) create(ctx context.Context, who port.Identity, w webhook.Webhook, in WebhookSettings) (v WebhookView, secret string, existing bool, err error) {
	now := s.now()
	w.Tenant, w.CreatedAt, w.CreatedBy, w.UpdatedAt, w.UpdatedBy = who.Tenant, now, who.Subject, now, who.Subject
	w = in.applied(w)
	if secret, err = s.newSecret(); err != nil {
		return v, "", false, err
	}
	w.Secrets = []webhook.Secret{{Text: secret, CreatedAt: now}}
	head, err := s.feed.Head(ctx, port.EventStream(who.Tenant))
	if err != nil {
		return v, "", false, fmt.Errorf("cannot read the stream of events: %w", err)
	}
	p := w.Begin(head.Newest, head.Epoch, now)
	err = s.save(ctx, nil, w, &p, who.Actor(), "")
	if errors.Is(err, port.ErrConflict) {
		v, err = s.existing(ctx, w)
		return v, "", true, err
	}
	if err != nil {
		return v, "", false, fmt.Errorf("cannot store the webhook: %w", err)
	}
	w.Version, p.Version = 1, 1
	s.wake(ctx, w.Ref(), newWebhookDelay)
	s.log.InfoContext(ctx, "webhook created", "tenant", w.Tenant, "webhook", w.ID, "by", who.Subject)
	return WebhookView{w, p}, secret, false, nil
}

// existing returns the webhook that an earlier request has created under the id of w.
func (s *Webhooks) existing(ctx context.Context, w webhook.Webhook) (WebhookView, error) {
	v, err := s.view(ctx, w.Ref())
	if err == nil && v.Digest != w.Digest {
		err = fault.New(fault.IdempotencyMismatch, "the Idempotency-Key was used for another request")
	}
	return v, err
}

func (in WebhookSettings) applied(w webhook.Webhook) webhook.Webhook {
	w.URL, w.Filter, w.Description, w.Paused, w.Ordered, w.RateLimit = in.URL, in.Filter, in.Description, in.Paused, in.Ordered, in.RateLimit
	return w
}

// Webhook returns a webhook of the caller's tenant. Fault: NotFound.
func (s *Webhooks) Webhook(ctx context.Context, who port.Identity, id string) (WebhookView, error) {
	return s.view(ctx, webhook.Ref{Tenant: who.Tenant, ID: id})
}

func (s *Webhooks) view(ctx context.Context, ref webhook.Ref) (v WebhookView, err error) {
	if v.Webhook, err = s.store.LoadWebhook(ctx, ref); err == nil {
		v.Progress, err = s.store.Progress(ctx, ref)
	}
	if errors.Is(err, port.ErrNotFound) {
		return WebhookView{}, noWebhook()
	}
	if err != nil {
		return WebhookView{}, fmt.Errorf("cannot read the webhook: %w", err)
	}
	return v, nil
}

// List returns a page of the webhooks of the caller's tenant, ordered by id.
func (s *Webhooks) List(ctx context.Context, who port.Identity, page port.Page) ([]webhook.Webhook, string, error) {
	found, next, err := s.store.Webhooks(ctx, who.Tenant, page)
	if err != nil {
		return nil, "", fmt.Errorf("cannot list the webhooks: %w", err)
	}
	return found, next, nil
}

// Change replaces the settings of a webhook by the result of decide. decide returns in enable
// whether the request has the field paused. A webhook gets the events from now on if it is no
// longer paused, or if it was disabled and paused is set to false. Missed events can be
// redelivered. Faults: NotFound, PreconditionFailed, those of Create and of decide.
func (s *Webhooks) Change(
	ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(WebhookSettings) (in WebhookSettings, enable bool, err error),
) (WebhookView, error) {
	return s.change(ctx, who, id, required, func(v WebhookView) (WebhookView, error) {
		in, enable, err := decide(SettingsOf(v.Webhook))
		if err == nil {
			err = s.check(in)
		}
		if err != nil {
			return v, err
		}
		was := v.Live()
		v.Webhook = in.applied(v.Webhook)
		if enable && !in.Paused {
			v.Disabled = nil
		}
		if was || !v.Live() {
			return v, nil
		}
		head, err := s.feed.Head(ctx, port.EventStream(who.Tenant))
		if err != nil {
			return v, fmt.Errorf("cannot read the stream of events: %w", err)
		}
		v.Progress = v.Progress.Enable(head.Newest, s.now())
		return v, nil
	})
}

// Rotate adds a secret. The previous one signs for another day. With revoke, all older secrets
// are removed at once. Faults: NotFound, PreconditionFailed, Unprocessable if there are too
// many secrets.
func (s *Webhooks) Rotate(ctx context.Context, who port.Identity, id string, revoke bool, required change.Precondition) (v WebhookView, secret string, err error) {
	if secret, err = s.newSecret(); err != nil {
		return v, "", err
	}
	v, err = s.change(ctx, who, id, required, func(v WebhookView) (WebhookView, error) {
		rotated, ok := v.Rotate(secret, revoke, who.Subject, s.now())
		if !ok {
			return v, fault.New(fault.Unprocessable, "%d secrets of the webhook sign already; the oldest one expires at %s; revokeOlder removes them",
				webhook.MaxSecrets, v.Signing(s.now())[0].ExpiresAt.Format(time.RFC3339))
		}
		v.Webhook = rotated
		return v, nil
	})
	return v, secret, err
}

// change applies decide to the stored webhook and saves the result. It repeats both after a
// conflict.
func (s *Webhooks) change(
	ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(WebhookView) (WebhookView, error),
) (WebhookView, error) {
	for range port.CommitTries {
		stored, err := s.Webhook(ctx, who, id)
		if err == nil {
			err = required.Check("webhook", WebhookTag(stored.Webhook))
		}
		if err != nil {
			return WebhookView{}, err
		}
		v, err := decide(stored)
		if err != nil {
			return WebhookView{}, err
		}
		v.UpdatedAt, v.UpdatedBy = s.now(), who.Subject
		var p *webhook.Progress
		if v.Live() != stored.Live() {
			p = &v.Progress
		}
		err = s.save(ctx, &stored.Webhook, v.Webhook, p, who.Actor(), "")
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return WebhookView{}, fmt.Errorf("cannot store the webhook: %w", err)
		}
		if v.Version++; p != nil {
			v.Progress.Version++
		}
		s.wake(ctx, v.Ref(), newWebhookDelay)
		s.log.InfoContext(ctx, "webhook changed", "tenant", v.Tenant, "webhook", v.ID, "version", v.Version, "by", who.Subject)
		return v, nil
	}
	return WebhookView{}, fault.New(fault.Unavailable, "too many concurrent changes of the webhook; retry")
}

// Delete removes a webhook with its log. Faults: NotFound, PreconditionFailed.
func (s *Webhooks) Delete(ctx context.Context, who port.Identity, id string, required change.Precondition) error {
	for range port.CommitTries {
		v, err := s.Webhook(ctx, who, id)
		if err == nil {
			err = required.Check("webhook", WebhookTag(v.Webhook))
		}
		if err != nil {
			return err
		}
		err = s.deleted(ctx, v.Webhook, who.Actor())
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot delete the webhook: %w", err)
		}
		s.log.InfoContext(ctx, "webhook deleted", "tenant", who.Tenant, "webhook", id, "by", who.Subject)
		return nil
	}
	return fault.New(fault.Unavailable, "too many concurrent changes of the webhook; retry")
}
