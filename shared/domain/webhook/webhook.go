// Package webhook decides how events are delivered to webhooks: which secrets sign, when an
// attempt is retried, at which rate a receiver is called, and when its webhook is disabled.
//
// It is pure: time and random numbers are arguments, and nothing is sent or stored. Delivery is
// at least once. An event is attempted up to Attempts times over about three days. A receiver
// that fails is called less often. A receiver that has failed for days, or that answers 410, is
// disabled.
package webhook

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
)

// The limits of a webhook.
const (
	// MaxRate is the maximum rate limit, in attempts per second.
	MaxRate = 1000
	// MaxDescription is the maximum length of a description, in characters.
	MaxDescription = 500
	// RotationTime is how long a replaced secret continues to sign.
	RotationTime = 24 * time.Hour
	// MaxSecrets is the maximum number of secrets that sign at the same time.
	MaxSecrets = 5
)

const idPrefix = "whk_"

var idForm = regexp.MustCompile(`^whk_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// ValidID reports whether the text has the form of a webhook id.
func ValidID(text string) bool { return idForm.MatchString(text) }

// ID returns the id of the webhook that a request creates at a time. The same time and name
// always give the same id.
func ID(at time.Time, name ...string) string {
	hash := sha256.New()
	for _, part := range name {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	var id ulid.ULID
	_ = id.SetTime(uint64(max(at.UnixMilli(), 0))) //nolint:gosec // until the year 10889
	copy(id[6:], hash.Sum(nil))
	return idPrefix + id.String()
}

// Ref identifies a webhook.
type Ref struct{ Tenant, ID string }

// Webhook is a subscription to events.
type Webhook struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Version counts the changes; 0 before the webhook is stored.
	Version     int64         `json:"version"`
	URL         string        `json:"url"`
	Filter      events.Filter `json:"filter,omitzero"`
	Description string        `json:"description,omitempty"`
	// Paused: nothing is sent, at the request of a client.
	Paused bool `json:"paused,omitempty"`
	// Ordered: the events of a task are delivered one after another.
	Ordered bool `json:"ordered,omitempty"`
	// RateLimit is in attempts per second; 0 means no limit.
	RateLimit int `json:"rateLimit,omitempty"`
	// TaskID is the task with which the webhook was created. It is deleted with that task.
	TaskID string `json:"taskId,omitempty"`
	// Disabled says why nothing is sent; nil if the webhook is enabled.
	Disabled *Disabled `json:"disabled,omitempty"`
	// Digest identifies the request that created the webhook under an idempotency key.
	Digest    string    `json:"digest,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
	// Secrets sign the requests, oldest first. Stores keep them separate from the record,
	// because operators print records.
	Secrets []Secret `json:"-"`
}

// Disabled says when and why Sortie disabled a webhook.
type Disabled struct {
	At     time.Time `json:"at"`
	Reason Reason    `json:"reason"`
}

// Reason says why a webhook was disabled, or will be.
type Reason string

// The reasons.
const (
	ReasonGone    Reason = "receiver_gone"    // the receiver answered 410
	ReasonFailed  Reason = "receiver_failed"  // no success for DisableAfter
	ReasonFailing Reason = "receiver_failing" // no success for WarnAfter; only a warning
)

// Secret is a secret of a webhook.
type Secret struct {
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"createdAt"`
	// ExpiresAt is when the secret stops signing; zero means never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Ref returns the reference of the webhook.
func (w Webhook) Ref() Ref { return Ref{w.Tenant, w.ID} }

// Live reports whether events are sent.
func (w Webhook) Live() bool { return !w.Paused && w.Disabled == nil }

// Signing returns the secrets that sign at the time, oldest first.
func (w Webhook) Signing(now time.Time) []Secret {
	return slices.DeleteFunc(slices.Clone(w.Secrets), func(s Secret) bool { return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt) })
}

// Rotate adds a secret. The replaced one signs for RotationTime more. With revoke, all older
// secrets are removed at once. ok is false if MaxSecrets secrets already sign.
func (w Webhook) Rotate(secret string, revoke bool, by string, now time.Time) (_ Webhook, ok bool) {
	signing := w.Signing(now)
	if revoke {
		signing = nil
	}
	if len(signing) >= MaxSecrets {
		return w, false
	}
	for i := range signing {
		if signing[i].ExpiresAt.IsZero() {
			signing[i].ExpiresAt = now.Add(RotationTime)
		}
	}
	w.Secrets = slices.Concat(signing, []Secret{{Text: secret, CreatedAt: now}})
	return w.changed(by, now), true
}

// Disable returns the webhook disabled, with the reason.
func (w Webhook) Disable(why Reason, by string, now time.Time) Webhook {
	w.Disabled = &Disabled{At: now, Reason: why}
	return w.changed(by, now)
}

func (w Webhook) changed(by string, now time.Time) Webhook {
	w.UpdatedAt, w.UpdatedBy = now, by
	return w
}
