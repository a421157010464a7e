package dynamo_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// created returns the item of a new run in the JSON form of the API.
func created(t *testing.T, d run.Decision) map[string]json.RawMessage {
	t.Helper()
	var image map[string]json.RawMessage
	cfg := awstest.Serve(t, map[string]awstest.Call{"PutItem": func(input json.RawMessage) (any, error) {
		var put struct{ Item map[string]json.RawMessage }
		err := json.Unmarshal(input, &put)
		image = put.Item
		return struct{}{}, err
	}})
	s, err := dynamo.Open(cfg, dynamo.Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), port.WriteOf(d), nil); err != nil {
		t.Fatal(err)
	}
	return image
}

func newEvents(t *testing.T, image map[string]json.RawMessage) (run.Run, []run.Event, error) {
	t.Helper()
	text, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	return dynamo.NewEvents(text)
}

func TestImageHasItsRunAndNewEvents(t *testing.T) {
	t.Parallel()
	d := run.New(run.Run{Tenant: "acme", ID: "a", TaskID: "a", CorrelationID: "req-1"}, time.Now())
	image := created(t, d)
	r, events, err := newEvents(t, image)
	if err != nil {
		t.Fatal(err)
	}
	d.Run.Version = 1
	if diff := cmp.Diff(d.Run, r); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(d.Events, events); diff != "" {
		t.Error(diff)
	}
}

func TestImageWithoutNewEvents(t *testing.T) {
	t.Parallel()
	image := created(t, run.New(run.Run{Tenant: "acme", ID: "a", TaskID: "a"}, time.Now()))
	delete(image, "fresh")
	for name, image := range map[string]map[string]json.RawMessage{
		"a commit without events": image,
		"a heartbeat":             {"pk": json.RawMessage(`{"S":"acme#run#a"}`), "sk": json.RawMessage(`{"S":"beat"}`), "at": json.RawMessage(`{"N":"1"}`)},
		"nothing":                 nil,
	} {
		if _, events, err := newEvents(t, image); err != nil || len(events) != 0 {
			t.Errorf("%s: got %v, %v", name, events, err)
		}
	}
}

func TestMalformedImageIsAnError(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]map[string]string{
		"no record":                     {"doc": `{"S":"x"}`},
		"a damaged record":              {"doc": `{"B":"AQAA"}`},
		"another packing":               {"doc": `{"B":"AgAA"}`},
		"damaged events":                {"ev": `{"L":[{"B":"AQAA"}]}`},
		"more new events than events":   {"fresh": `{"N":"2"}`},
		"negative number of new events": {"fresh": `{"N":"-1"}`},
	} {
		image := created(t, run.New(run.Run{Tenant: "acme", ID: "a", TaskID: "a"}, time.Now()))
		for name, value := range change {
			image[name] = json.RawMessage(value)
		}
		if _, events, err := newEvents(t, image); err == nil {
			t.Errorf("%s: got %v, want an error", name, events)
		}
	}
	if _, _, err := dynamo.NewEvents(json.RawMessage(`[]`)); err == nil {
		t.Error("list as image: got success")
	}
}
