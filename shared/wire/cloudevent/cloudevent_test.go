package cloudevent_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/cloudevent"
)

const event = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}`

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// TestModes reads events in each mode of the HTTP protocol binding.
func TestModes(t *testing.T) {
	t.Parallel()
	binary := []string{"ce-specversion", "1.0", "ce-id", "1", "ce-source", "/s", "ce-type", "t"}
	for name, row := range map[string]struct {
		header http.Header
		body   string
		want   []string
	}{
		"structured": {headers("Content-Type", "application/cloudevents+json; charset=UTF-8"), event, []string{`"data":{"a":1}`}},
		"batch":      {headers("Content-Type", "application/cloudevents-batch+json"), "[" + event + "," + event + "]", []string{`"id":"1"`, `"id":"1"`}},
		"no events":  {headers("Content-Type", "application/cloudevents-batch+json"), "[]", nil},
		"binary":     {headers(append(binary, "Content-Type", "application/json", "Ce-Partition", "7")...), `{"a": 1}`, []string{`{"data":{"a":1},"datacontenttype":"application/json","id":"1","partition":"7","source":"/s","specversion":"1.0","type":"t"}`}},
		"no data":    {headers(append(binary, "ce-subject", "Euro%20%E2%82%AC%20%F0%9F%98%80")...), "", []string{`"subject":"Euro € 😀"`}},
		"EventBridge": {
			headers("ce-specversion", "1.0", "ce-id", "17793124-05d4-b198-2fde-7ededc63b103", "ce-source", "aws.s3", "ce-type", "Object Created", "Content-Type", "application/json; charset=utf-8"),
			`{"version":"0","id":"17793124-05d4-b198-2fde-7ededc63b103","detail-type":"Object Created","source":"aws.s3","detail":{"object":{"key":"in/a.csv"}}}`,
			[]string{`"key":"in/a.csv"`},
		},
		"quoted": {headers(append(binary, "ce-subject", `"a \"b\""`)...), "", []string{`"subject":"a \"b\""`}},
	} {
		if !cloudevent.Supported(row.header) {
			t.Errorf("%s: got it unsupported, want it read", name)
			continue
		}
		events, err := cloudevent.Read(row.header, []byte(row.body))
		if err != nil || len(events) != len(row.want) {
			t.Errorf("%s: got %+v, %v, want %d events", name, events, err, len(row.want))
			continue
		}
		for i, want := range row.want {
			if !strings.Contains(string(events[i].Document), want) {
				t.Errorf("%s: got %s, want %s", name, events[i].Document, want)
			}
		}
	}
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	for _, unsupported := range []http.Header{
		{},
		headers("Content-Type", "application/json"), headers("Content-Type", "application/cloudevents+xml", "ce-specversion", "1.0"),
		headers("Content-Type", "application/cloudevents+json; charset=latin1"),
	} {
		if cloudevent.Supported(unsupported) {
			t.Errorf("got %v supported, want 415", unsupported)
		}
	}
	batch := headers("Content-Type", "application/cloudevents-batch+json")
	for name, row := range map[string]struct {
		header      http.Header
		body, field string
	}{
		"batch of no list":   {batch, event, ""},
		"null batch":         {batch, "null", ""},
		"null in a batch":    {batch, "[null]", "0"},
		"second is bad":      {batch, "[" + event + `,{"specversion":"1.0"}]`, "1.id"},
		"101 events":         {batch, "[" + strings.Repeat(event+",", 100) + event + "]", ""},
		"two ids":            {headers("ce-specversion", "1.0", "ce-id", "1", "ce-id", "2", "ce-source", "/s", "ce-type", "t"), "", "ce-id"},
		"malformed percent":  {headers("ce-specversion", "1.0", "ce-id", "%zz", "ce-source", "/s", "ce-type", "t"), "", "ce-id"},
		"encoded line":       {headers("ce-specversion", "1.0", "ce-id", "a%0Ab", "ce-source", "/s", "ce-type", "t"), "", "id"},
		"encoded bad UTF-8":  {headers("ce-specversion", "1.0", "ce-id", "%ff", "ce-source", "/s", "ce-type", "t"), "", "id"},
		"data in a header":   {headers("ce-specversion", "1.0", "ce-id", "1", "ce-source", "/s", "ce-type", "t", "ce-data", "x"), "", "data"},
		"name with a hyphen": {headers("ce-specversion", "1.0", "ce-id", "1", "ce-source", "/s", "ce-type", "t", "ce-a-b", "x"), "", "a-b"},
	} {
		if _, err := cloudevent.Read(row.header, []byte(row.body)); err == nil || fault.Of(err).Field != row.field {
			t.Errorf("%s: got %v, want a refusal of %q", name, err, row.field)
		}
	}
}

// FuzzRead checks that no request breaks the reader.
func FuzzRead(f *testing.F) {
	f.Add("application/cloudevents-batch+json", "1", "["+event+"]")
	f.Add("text/plain", "%41", "x")
	f.Fuzz(func(t *testing.T, kind, id, body string) {
		h := headers("Content-Type", kind, "ce-specversion", "1.0", "ce-id", id, "ce-source", "/s", "ce-type", "t")
		events, err := cloudevent.Read(h, []byte(body))
		for _, e := range events {
			if err == nil && (e.ID == "" || len(e.Document) == 0) {
				t.Errorf("got %+v, want an event with an id", e)
			}
		}
	})
}
