package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// TestExamplesAreEventsOfLives compares examples of event types whose fault the tests of a
// deployment cannot cause. Those tests compare the other examples.
func TestExamplesAreEventsOfLives(t *testing.T) {
	t.Parallel()
	s := schema(t)
	found := map[eventtype.Type]events.Envelope{eventtype.RelayUnreadable: api.Unreadable("acme", "01KJMMA2G0EXJP4T3FDXNJWC1Q", nine)}
	for _, name := range []string{"a_worker_is_silent", "an_execution_is_lost"} {
		for _, e := range lives()[name].events(t, s) {
			found[e.EventType] = e
		}
	}
	for _, kind := range []eventtype.Type{eventtype.RelayUnreadable, eventtype.ZombieDetected, eventtype.Restarted, eventtype.Orphaned} {
		e := found[kind]
		info, _ := eventtype.Of(kind)
		e.Notifier = &events.Notifier{Channel: info.Subject.Channel(), Delivery: events.DeliveryPlain}
		want, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		path := filepath.Join("..", "..", "..", "events", "examples", string(kind)+".json")
		if *rewrite {
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not up to date (%v); -rewrite writes\n%s", path, err, want)
		}
	}
}
