package webhooks_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestAttacksByWebhooks creates webhooks, and changes one, with every attack. An invalid URL is
// refused. A name that resolves to an address that is not public is refused when it is dialled.
// A test event shows no response of it.
func TestAttacksByWebhooks(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	own := apitest.NewWebhooks(t, parts, "10.9.9.9")
	s := &stage{webhooks: own, Stage: apitest.New(t, parts, func(*app.System) []httpkit.Route { return webhooks.Routes(own.Webhooks) })}
	good, _ := call[contract.WebhookDetail](t, s, "POST", "/v1/webhooks", `{"url": "https://hooks.example.org/"}`, 201)
	for _, attack := range porttest.AddressAttacks() {
		body, err := json.Marshal(map[string]string{"url": attack.URL})
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range [][2]string{{"POST", "/v1/webhooks"}, {"PATCH", "/v1/webhooks/" + good.ID}} {
			answer := s.Call(t, request[0], request[1], string(body))
			if attack.Address != "" { // the name may have public addresses too
				if answer.Status >= http.StatusBadRequest {
					t.Errorf("%s by %s: got %d %s, want the name accepted until it is dialled", attack.Name, request[0], answer.Status, answer.Body)
				}
				continue
			}
			var p contract.Problem
			want := http.StatusUnprocessableEntity
			if attack.URL == "" {
				want = http.StatusBadRequest // it is missing
			}
			if err := json.Unmarshal([]byte(answer.Body), &p); err != nil || answer.Status != want || p.Field != "url" {
				t.Errorf("%s by %s: got %d %s, want %d for url", attack.Name, request[0], answer.Status, answer.Body, want)
			}
			if strings.Contains(answer.Body, "s3cret") || strings.Contains(answer.Body, "ssss") {
				t.Errorf("%s by %s: got a part of the URL that may be secret in %s", attack.Name, request[0], answer.Body)
			}
		}
		if attack.Address == "" {
			continue
		}
		policy, err := guard.Policy{}.WithRules("10.9.9.9")
		if err != nil {
			t.Fatal(err)
		}
		target, err := policy.Target(attack.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := policy.Control(target)("tcp", attack.Address, nil); !errors.Is(err, guard.ErrNotPermitted) {
			t.Errorf("%s: got %v for %s, want it refused when it is dialled", attack.Name, err, attack.Address)
		}
	}
}
