package stream

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/port"
)

func BenchmarkNewEvent(b *testing.B) {
	payload, err := json.Marshal(events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID("01KA0000000000000000000000"), EventType: eventtype.Completed,
		OccurredAt: time.Unix(0, 0).UTC(), IdempotencyKey: "orch-job.completed-job_1-1", TenantID: "default", ProjectID: "default",
		CorrelationID: "0f6cf7a4-6c4e-4f7e-8a0a-5f1d1c6a7d11",
		Actor:         events.Actor{Subject: "worker:w1"}, Job: &events.Job{ID: "job_1", RunID: "job_1", Attempt: 1, State: "Completed", Status: events.StatusCompleted, Artifacts: []events.Artifact{{URI: "r2://x/y", MIME: "application/xml"}}},
		Metrics: map[string]any{"durationSeconds": 12.5}, Notifier: &events.Notifier{Channel: "orch.jobs", Delivery: events.DeliveryDSSE},
	})
	if err != nil {
		b.Fatal(err)
	}
	data := []byte(`{"payloadType":"application/vnd.orch.event.v1+json","payload":"` + base64.StdEncoding.EncodeToString(payload) + `","signatures":[{"keyid":"event-0123456789abcdef","sig":"` + base64.StdEncoding.EncodeToString(make([]byte, 64)) + `"}]}`)
	for b.Loop() {
		if _, err := newEvent(port.FeedRecord{Position: 1, Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}
