package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
)

// message returns the message of an event of a type, signed by a key.
func message(t testing.TB, k events.Key, e events.Envelope, position int64) events.Message {
	t.Helper()
	payload, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := events.Sign(context.Background(), payload, k)
	if err != nil {
		t.Fatal(err)
	}
	return events.NewMessage(e, "e1", position, signed)
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	document, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// TestMessageIsACloudEvent reads a message of each type with the SDK of CloudEvents
// (EE-5.1, EE-5.7).
func TestMessageIsACloudEvent(t *testing.T) {
	t.Parallel()
	for i, info := range eventtype.All() {
		e := sample(info.Type, i+1)
		var got cloudevents.Event
		if err := json.Unmarshal(encoded(t, message(t, key(t, 1), e, 42)), &got); err != nil {
			t.Fatalf("%s: got %v, want a CloudEvent", info.Type, err)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: got %v, want a valid CloudEvent", info.Type, err)
		}
		if got.SpecVersion() != "1.0" || got.ID() != e.EventID || got.Type() != string(e.EventType) || got.Source() != "urn:orch:tenant:"+e.TenantID ||
			!got.Time().Equal(e.OccurredAt) || got.DataContentType() != "application/json" || got.DataSchema() != "" {
			t.Errorf("%s: got %s, want the attributes of %+v", info.Type, got, e)
		}
		want := map[string]any{"sequence": "00000000000000000042", "epoch": "e1", "tenantid": e.TenantID, "idempotencykey": e.IdempotencyKey}
		for name, value := range map[string]string{"projectid": e.ProjectID, "correlationid": e.CorrelationID} {
			if value != "" {
				want[name] = value
			}
		}
		if e.Job != nil {
			want["taskid"], want["runid"] = e.Job.ID, e.Job.RunID
		}
		if fmt.Sprint(got.Extensions()) != fmt.Sprint(want) {
			t.Errorf("%s: got extensions %v, want %v", info.Type, got.Extensions(), want)
		}
		var signed struct{ PayloadType string }
		if err := got.DataAs(&signed); err != nil || signed.PayloadType != events.PayloadType {
			t.Errorf("%s: got data %s, %v, want a DSSE envelope", info.Type, got.Data(), err)
		}
	}
}

func TestSubjectsOfMessages(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]events.Envelope{
		"task/t1":     {Job: &events.Job{ID: "t1"}},
		"job/nightly": {Schedule: &events.Schedule{DefinitionID: "nightly"}},
		"pool/gpu":    {Policy: &events.Policy{Resource: "pool", ID: "gpu"}},
		"":            {},
	} {
		if got := events.NewMessage(e, "e1", 1, nil).Subject; got != want {
			t.Errorf("got subject %q, want %q", got, want)
		}
	}
}

// TestSequencesOrderAsPositions compares the texts of any two positions.
func TestSequencesOrderAsPositions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(1, 1<<62).Draw(t, "a"), rapid.Int64Range(1, 1<<62).Draw(t, "b")
		first, second := events.NewMessage(events.Envelope{}, "e", a, nil), events.NewMessage(events.Envelope{}, "e", b, nil)
		if (first.Sequence < second.Sequence) != (a < b) || len(first.Sequence) != len(second.Sequence) {
			t.Fatalf("got %s and %s for %d and %d, want their order", first.Sequence, second.Sequence, a, b)
		}
	})
}

// TestMessageIsComparedWithItsEvent changes each attribute, and the signed event (EE-5.7).
func TestMessageIsComparedWithItsEvent(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	e := sample(eventtype.Completed, 1)
	e.Notifier = &events.Notifier{Channel: "orch.jobs", Delivery: events.DeliveryDSSE, Replay: &events.Replay{Ordinal: 5, Total: 12}}
	good := message(t, k, e, 7)
	keys := keysOf(k)
	open := func(document []byte) error {
		_, _, err := keys.OpenMessage(t.Context(), document)
		return err
	}
	if got, _, err := keys.OpenMessage(t.Context(), encoded(t, good)); err != nil || got.EventID != e.EventID || good.Replay != "5/12" {
		t.Fatalf("got %+v, %v, want the event of a replay", got, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded(t, good), &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		switch name {
		case "epoch", "data": // epoch is not signed
			continue
		case "sequence":
			fields[name] = "one"
		case "time":
			fields[name] = e.OccurredAt.Add(time.Second)
		default:
			fields[name] = "other"
		}
		if err := open(encoded(t, fields)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s changed: got %v, want an error that names it", name, err)
		}
		delete(fields, name)
		if err := open(encoded(t, fields)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s removed: got %v, want an error that names it", name, err)
		}
		fields[name] = value
	}
	fields["partitionkey"] = "added by a broker"
	if err := open(encoded(t, fields)); err != nil {
		t.Errorf("got %v, want an unknown attribute ignored", err)
	}
	other := sample(eventtype.Completed, 2)
	document := string(encoded(t, good))
	for name, text := range map[string]string{
		"event of another message": string(encoded(t, func() events.Message { m := good; m.Data = message(t, k, other, 7).Data; return m }())),
		"unknown key":              string(encoded(t, message(t, key(t, 2), e, 7))),
		"second tenant":            strings.Replace(document, `"tenantid"`, `"tenantid":"other","tenantid"`, 1),
		"second tenant, upper":     strings.Replace(document, `"tenantid"`, `"tenantID":"other","tenantid"`, 1),
		"number for a text":        strings.Replace(document, `"tenantid":"`+e.TenantID+`"`, `"tenantid":1`, 1),
		"a task for a schedule": strings.Replace(string(encoded(t, message(t, k, sample(eventtype.ScheduleFired, 1), 7))),
			`"sequence"`, `"taskid":"t","sequence"`, 1),
		"list": "[]", "nothing": "", "half": document[:len(document)/2],
	} {
		if err := open([]byte(text)); err == nil {
			t.Errorf("%s: got success, want an error", name)
		}
	}
}

// TestVerifyComparesMessages reads messages in place of DSSE envelopes.
func TestVerifyComparesMessages(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	var tree events.Tree
	var lines []string
	for n := range 3 {
		e := sample(eventtype.Queued, n+1)
		var err error
		if tree, err = tree.Add(encoded(t, e)); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(encoded(t, message(t, k, e, int64(n+1)))))
	}
	signed, err := events.Checkpoint{Origin: events.Origin("acme", "e1"), Tree: tree}.Sign(k)
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, string(encoded(t, events.CheckpointLine{Checkpoint: signed})))
	file := strings.Join(lines, "\n")
	if proof, err := events.Verify(t.Context(), strings.NewReader(file), keysOf(k)); err != nil || proof.Events != 3 || proof.To != 3 {
		t.Errorf("got %+v, %v, want three proved events", proof, err)
	}
	file = strings.Replace(file, `"projectid":"`, `"projectid":"x`, 1)
	if _, err := events.Verify(t.Context(), strings.NewReader(file), keysOf(k)); err == nil || !strings.Contains(err.Error(), "line 1: attribute projectid") {
		t.Errorf("got %v, want an error of the project on line 1", err)
	}
}
