// Package webhook decides how events are delivered to webhooks: which secrets sign, when
// an attempt is repeated, how fast a receiver is called, and when it is called no more.
//
// It is pure: time and random numbers are arguments, and nothing is sent or stored.
// Delivery is at least once. An event is attempted up to Attempts times over about three
// days. A receiver that fails is called less often, and one that has failed for days, or
// that answers 410, is disabled.
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
	// MaxRate is the highest rate limit, in attempts per second.
	MaxRate = 1000
	// MaxDescription is the length of a description in characters.
	MaxDescription = 500
	// RotationTime is how long a replaced secret still signs.
	RotationTime = 24 * time.Hour
	// MaxSecrets is the number of secrets that sign at once.
	MaxSecrets = 5
)

const idPrefix = "whk_"

var idForm = regexp.MustCompile(`^whk_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// ValidID reports whether a text has the form of a webhook's id.
func ValidID(text string) bool { return idForm.MatchString(text) }

// ID returns the id of the webhook that a request creates at a time. The same name
// always gives the same id.
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
	// Paused: nothing is sent, by request.
	Paused bool `json:"paused,omitempty"`
	// Ordered: the events of a task are sent one after another.
	Ordered bool `json:"ordered,omitempty"`
	// RateLimit is in attempts per second; 0 is no limit.
	RateLimit int `json:"rateLimit,omitempty"`
	// TaskID is the task that the webhook was created with and is deleted with.
	TaskID string `json:"taskId,omitempty"`
	// Disabled is why nothing is sent; nil if it is.
	Disabled *Disabled `json:"disabled,omitempty"`
	// Digest identifies the request that has created the webhook under an idempotency key.
	Digest    string    `json:"digest,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
	// Secrets sign, the oldest first. Stores keep them apart from the record, which
	// operators print.
	Secrets []Secret `json:"-"`
}

// Disabled is when and why Sortie has disabled a webhook.
type Disabled struct {
	At     time.Time `json:"at"`
	Reason Reason    `json:"reason"`
}

// Reason is why a webhook was disabled, or a warning that it will be.
type Reason string

// The reasons.
const (
	ReasonGone    Reason = "receiver_gone"    // it answered 410
	ReasonFailed  Reason = "receiver_failed"  // no success for DisableAfter
	ReasonFailing Reason = "receiver_failing" // no success for WarnAfter; a warning
)

// Secret is a secret of a webhook.
type Secret struct {
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"createdAt"`
	// ExpiresAt is when it no longer signs; zero is never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Ref identifies the webhook.
func (w Webhook) Ref() Ref { return Ref{w.Tenant, w.ID} }

// Live reports whether events are sent.
func (w Webhook) Live() bool { return !w.Paused && w.Disabled == nil }

// Signing returns the secrets that sign at a time, the oldest first.
func (w Webhook) Signing(now time.Time) []Secret {
	return slices.DeleteFunc(slices.Clone(w.Secrets), func(s Secret) bool { return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt) })
}

// Rotate adds a secret. The one that it replaces signs for RotationTime more, or not at all
// if older secrets are revoked. ok is false if MaxSecrets secrets sign already.
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

// Disable stops the deliveries for a reason.
func (w Webhook) Disable(why Reason, by string, now time.Time) Webhook {
	w.Disabled = &Disabled{At: now, Reason: why}
	return w.changed(by, now)
}

func (w Webhook) changed(by string, now time.Time) Webhook {
	w.UpdatedAt, w.UpdatedBy = now, by
	return w
}
