package sqlite_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestEventsAreInspected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	store, db, now := setupStore(t, path)
	feed := newFeed(t, db, now)
	ctx := t.Context()
	stream := port.EventStream("acme")
	head, err := feed.Append(ctx, stream, port.Batch{
		Records: []port.FeedRecord{{ID: "first", At: now.Now(), Data: []byte("one")}, {ID: "second", At: now.Now(), Data: []byte("two")}},
		State:   []byte("tree"), Mark: []byte("checkpoint"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.MoveCursor(ctx, stream, "bus", 0, 1); err != nil {
		t.Fatal(err)
	}
	w := webhook.Webhook{Tenant: "acme", ID: "wh_1", URL: "https://hooks.example.org", Secrets: []webhook.Secret{{Text: "whsec_hidden", CreatedAt: now.Now()}}}
	p := w.Begin(0, head.Epoch, now.Now())
	if err := store.SaveWebhook(ctx, w, &p); err != nil {
		t.Fatal(err)
	}
	p.Version = 1
	if err := store.SaveDeliveries(ctx, p, webhook.Delivery{Position: 2, State: webhook.Pending}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{
		stream: {
			`"epoch":"` + head.Epoch + `"`, `"newest":2`, `"state":"tree"`, `"data":"checkpoint"`, `"consumer":"bus"`, `"id":"first"`, `"id":"second"`,
		},
		"second": {`"position":2`, `"data":"two"`, `"stream":"` + stream + `"`},
		"wh_1":   {`"url":"https://hooks.example.org"`, `"deliveries":[{`, `"position":2`, `"progress":[{`},
	} {
		found, err := sqlite.Inspect(ctx, path, id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s: got %s, want %s in it", id, text, part)
			}
		}
		if strings.Contains(string(text), "hidden") {
			t.Errorf("%s: got a secret in %s", id, text)
		}
	}
}
