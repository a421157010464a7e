package stream

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestPlainFormKeepsUnknownFields: the plain form has another delivery. Its other fields are
// those of the signed form, including fields that this version does not know.
func TestPlainFormKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	const fields = `"schemaVersion":"orch.event.v1","eventId":"urn:orch:event:01KA0000000000000000000000","eventType":"job.queued","occurredAt":"2026-01-02T03:04:05Z","tenantId":"a","actor":{"subject":"x"},"later":[1.50,1e3]`
	for name, payload := range map[string]string{
		"no notifier":        `{` + fields + `}`,
		"usual":              `{` + fields + `,"notifier":{"channel":"orch.jobs","delivery":"dsse"}}`,
		"unknown in it":      `{` + fields + `,"notifier":{"channel":"orch.jobs","delivery":"dsse","later":{"a":1}}}`,
		"the same in a part": `{"job":{"id":"t","notifier":{"delivery":"dsse"}},` + fields + `,"notifier":{"delivery":"dsse"}}`,
		"spaces and lines":   "{\n  " + fields + ",\n  \"notifier\": {\"channel\": \"orch.jobs\",\r\n \"delivery\": \"dsse\"}\n}",
	} {
		data := fmt.Sprintf(`{"payloadType":"x","payload":"%s","signatures":[]}`, base64.StdEncoding.EncodeToString([]byte(payload)))
		e, err := newEvent(port.FeedRecord{Position: 1, Data: []byte(data)})
		if err != nil {
			t.Errorf("%s: got %v, want an event", name, err)
			continue
		}
		want, err := events.Canonical([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		got, err := events.Canonical(e.Plain)
		parsed, failed := events.Parse(e.Plain)
		if err != nil || failed != nil || !bytes.Equal(got, want) || bytes.ContainsAny(e.Plain, "\r\n") ||
			parsed.Notifier != nil && parsed.Notifier.Delivery != events.DeliveryPlain || (parsed.Notifier == nil) != (name == "no notifier") {
			t.Errorf("%s: got %s, %v, %v, want %s with delivery plain on one line", name, e.Plain, err, failed, want)
		}
	}
	for _, data := range []string{"", "{}", `{"payload":"!"}`, `{"payload":"e30="}`, `{"payload":"eyJzY2hlbWFWZXJzaW9uIjoib3JjaC5ldmVudC52MiJ9"}`} {
		if e, err := newEvent(port.FeedRecord{Position: 7, Data: []byte(data)}); err == nil || e.Position != 7 || len(e.Plain) > 0 {
			t.Errorf("%q: got %+v, %v, want an error and the position", data, e, err)
		}
	}
}
