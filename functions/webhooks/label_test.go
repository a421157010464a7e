package webhooks_test

import (
	"testing"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestWebhookHasASelectorOfLabels creates webhooks with selectors, and changes one.
func TestWebhookHasASelectorOfLabels(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	own := apitest.NewWebhooks(t, parts)
	s := &stage{webhooks: own, Stage: apitest.New(t, parts, func(*app.System) []httpkit.Route { return webhooks.Routes(own.Webhooks) })}
	const settings = `{"url": "https://hooks.example.org/", "label": `
	good, _ := call[contract.WebhookDetail](t, s, "POST", "/v1/webhooks", settings+`"team=data,!env"}`, 201)
	path := "/v1/webhooks/" + good.ID
	changed, _ := call[contract.WebhookDetail](t, s, "PATCH", path, `{"description": "a"}`, 200)
	if good.Label != "team=data,!env" || changed.Label != good.Label {
		t.Errorf("got %q and %q, want the selector", good.Label, changed.Label)
	}
	for _, selector := range []string{`"team in ("`, `"a===b"`, `"a\u0000"`, `"-team"`} {
		for _, request := range [][2]string{{"POST", "/v1/webhooks"}, {"PATCH", path}} {
			if p, _ := call[contract.Problem](t, s, request[0], request[1], settings+selector+"}", 400); p.Field != "label" {
				t.Errorf("%s by %s: got %+v, want a problem of label", selector, request[0], p)
			}
		}
	}
	if changed, _ = call[contract.WebhookDetail](t, s, "PATCH", path, `{"label": null}`, 200); changed.Label != "" {
		t.Errorf("got %q, want no selector", changed.Label)
	}
}
