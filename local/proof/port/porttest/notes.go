package porttest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Notes is the conformance suite for the notes of a store. A note must be stored together with
// its change, or not at all. delivered returns all notes that the store has for the relay, in
// order.
func Notes(t *testing.T, store port.Store, delivered func() []port.Note) {
	t.Helper()
	ctx, now := t.Context(), time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	note := func(id string) port.Note {
		return port.Note{Tenant: "acme", ID: id, At: now, Document: json.RawMessage(`{"eventId":"<` + id + `>","text":"ž"}`)}
	}
	j, p := job.Job{Tenant: "acme", ID: "j", Version: 1, CreatedAt: now}, platform.Pool{Tenant: "acme", ID: "p", CreatedAt: now}
	w := webhook.Webhook{Tenant: "acme", ID: "w"}
	limit := func(version int64) func(port.Note) error {
		return func(n port.Note) error {
			_, err := store.PutLimit(ctx, "acme", budget.ScopeTenant, budget.Limit{}, version, now, n)
			return err
		}
	}
	type change struct {
		id   string
		make func(port.Note) error
		want error
	}
	changes := []change{
		{"job created", func(n port.Note) error { return store.SaveJob(ctx, j, n) }, nil},
		{"job conflicts", func(n port.Note) error { return store.SaveJob(ctx, j, n) }, port.ErrConflict},
		{"job changed", func(n port.Note) error { j.Revision = 1; return store.SaveJob(ctx, j, n) }, nil},
		{"job deleted", func(n port.Note) error { j.Revision = 2; return store.DeleteJob(ctx, j, n) }, nil},
		{"job unknown", func(n port.Note) error { return store.DeleteJob(ctx, j, n) }, port.ErrConflict},
		{"limit created", limit(0), nil},
		{"limit conflicts", limit(0), port.ErrConflict},
		{"limit changed", limit(1), nil},
		{"pool created", func(n port.Note) error { return store.SavePool(ctx, p, n) }, nil},
		{"pool conflicts", func(n port.Note) error { return store.SavePool(ctx, p, n) }, port.ErrConflict},
		{"pool deleted", func(n port.Note) error { p.Version = 1; return store.DeletePool(ctx, p, n) }, nil},
		{"pool unknown", func(n port.Note) error { return store.DeletePool(ctx, p, n) }, port.ErrConflict},
		{"alone", func(n port.Note) error { return store.AddNotes(ctx, n) }, nil},
		{"largest", func(n port.Note) error {
			n.Document = json.RawMessage(`"` + strings.Repeat("x", 64<<10-2) + `"`)
			return store.AddNotes(ctx, n)
		}, nil},
		{"none", func(port.Note) error { return store.AddNotes(ctx) }, nil},
		{"together", func(n port.Note) error { return store.AddNotes(ctx, n, note("second")) }, nil},
	}
	if hooks, ok := store.(port.WebhookStore); ok {
		changes = append(
			changes,
			change{"webhook created", func(n port.Note) error { return hooks.SaveWebhook(ctx, w, nil, n) }, nil},
			change{"webhook conflicts", func(n port.Note) error { return hooks.SaveWebhook(ctx, w, nil, n) }, port.ErrConflict},
			change{"webhook deleted", func(n port.Note) error { w.Version = 1; return hooks.DeleteWebhook(ctx, w, n) }, nil},
			change{"webhook unknown", func(n port.Note) error { return hooks.DeleteWebhook(ctx, w, n) }, port.ErrConflict},
		)
	}
	var want []port.Note
	for _, c := range changes {
		if err := c.make(note(c.id)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.id, err, c.want)
		}
		switch {
		case c.want != nil, c.id == "none":
		case c.id == "largest":
			want = append(want, port.Note{Tenant: "acme", ID: c.id, At: now, Document: json.RawMessage(`"` + strings.Repeat("x", 64<<10-2) + `"`)})
		case c.id == "together":
			want = append(want, note(c.id), note("second"))
		default:
			want = append(want, note(c.id))
		}
		if diff := cmp.Diff(want, delivered()); diff != "" {
			t.Fatalf("%s: want -, got +\n%.2000s", c.id, diff)
		}
	}
}
