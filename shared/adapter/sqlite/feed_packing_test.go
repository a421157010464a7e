package sqlite_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

// envelope returns a DSSE envelope with a payload.
func envelope(payload string) string {
	return `{"payloadType":"application/vnd.orch.event.v1+json","payload":"` + base64.StdEncoding.EncodeToString([]byte(payload)) +
		`","signatures":[{"keyid":"event-e42326a64fabe7c9","sig":"m7oTiwpLNpl/dQUB6sE+NfjEsqhbahwuw3lfPRmSl8Tiks7RSdztJv8uouU5q8KpUJsdOjkhVmcn5neW4wKmBg=="}]}`
}

const event = `{"schemaVersion":"orch.event.v1","eventId":"urn:orch:event:00VHNCZB00J3T3FTBHY2X9R2D2","eventType":"job.admitted",` +
	`"occurredAt":"2026-01-01T00:00:00Z","tenantId":"default","projectId":"default","actor":{"subject":"service:steps"},` +
	`"job":{"id":"export_mods_946684800000_dbe5882e","type":"export","runId":"export_mods_946684800000_dbe5882e","status":"running"},` +
	`"notifier":{"channel":"orch.jobs","delivery":"dsse"}}`

// TestDataOfRecordsIsKept appends data of all forms, and reads the same bytes again.
func TestDataOfRecordsIsKept(t *testing.T) {
	t.Parallel()
	all := []string{
		event, `{"schemaVersion":`, `{"schemaVersion":"` + strings.Repeat("\x00", 100<<10), envelope(event), envelope(""), envelope("{}"), envelope(strings.Repeat("x", 60<<10)), envelope("\x00\xff"),
		`"payload":"`, `"payload":""`, `"payload":"eA"`, `"payload":"eA=="`, `"payload":"eB=="`, "\"payload\":\"eA=\n=\"", `"payload":"not base64"`,
		"", "{", "text", "\x01", strings.Repeat("\x00", port.MaxFeedData), strings.Repeat(" ", 90<<10) + envelope(event), envelope(envelope(event)),
	}
	_, db, now := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	feed := newFeed(t, db, now)
	for i, data := range all {
		record := port.FeedRecord{ID: fmt.Sprint(i), At: now.Now(), Data: []byte(data)}
		if _, err := feed.Append(t.Context(), "events/acme", port.Batch{After: int64(i), Records: []port.FeedRecord{record}}); err != nil {
			t.Fatalf("%.60q: %v", data, err)
		}
	}
	for i, data := range all {
		found, err := feed.Read(t.Context(), "events/acme", int64(i), 1)
		if err != nil || len(found) != 1 || !bytes.Equal(found[0].Data, []byte(data)) {
			t.Errorf("%.60q: got %.200s, %v", data, fmt.Sprint(found), err)
		}
	}
}

// TestStoredEventIsSmall bounds the size of the row of an event, which stays readable in
// the tools.
func TestStoredEventIsSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	_, db, now := setupStore(t, path)
	feed := newFeed(t, db, now)
	records := []port.FeedRecord{{ID: "event", At: now.Now(), Data: []byte(envelope(event))}}
	if _, err := feed.Append(t.Context(), "events/acme", port.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
	size := 0
	if err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT length(data) FROM feed_records").Scan(&size)
	}); err != nil {
		t.Fatal(err)
	}
	if most := len(event) * 3 / 5; size > most {
		t.Errorf("got %d bytes for an envelope of %d, want at most %d", size, len(envelope(event)), most)
	}
	found, err := sqlite.Inspect(t.Context(), path, "event")
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ Data string }
	if text, ok := found["record"].(json.RawMessage); !ok || json.Unmarshal(text, &record) != nil || record.Data != envelope(event) {
		t.Errorf("got %s, want the envelope", found["record"])
	}
}
