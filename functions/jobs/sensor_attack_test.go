package jobs_test

import (
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestSensorsReachNoInnerAddresses stores sensors with the addresses of attackers. A name is refused
// when it is dialed.
func TestSensorsReachNoInnerAddresses(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, attack := range porttest.AddressAttacks() {
		if attack.Address != "" || attack.URL == "" {
			continue
		}
		for field, sensor := range map[string]map[string]any{
			"sensor.bucket.endpoint": {"bucket": map[string]any{"name": "items", "secretRef": "s", "endpoint": attack.URL}},
			"sensor.queue.url":       {"queue": map[string]any{"url": attack.URL, "secretRef": "s"}},
		} {
			body, err := json.Marshal(map[string]any{"image": "a", "sensor": sensor})
			if err != nil {
				t.Fatal(err)
			}
			answer := stage.Call(t, "PUT", path, string(body))
			var p contract.Problem
			if err := json.Unmarshal([]byte(answer.Body), &p); err != nil || answer.Status != 400 && answer.Status != 422 || p.Field != field {
				t.Errorf("%s: got %d %s, want a problem of %s", attack.Name, answer.Status, answer.Body, field)
			}
		}
	}
}
