package sensor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

const order = `{"specversion":"1.0","id":"4711","source":"/shop","type":"com.example.order","subject":"o/1","time":"2026-03-01T08:00:00Z",
	"datacontenttype":"application/json","shard":7,"urgent":true,"data":{"total":1.0,"note":"<&>"}}`

func TestEventIsRead(t *testing.T) {
	t.Parallel()
	e, err := sensor.Parse([]byte(order))
	if err != nil || e.ID != "4711" || e.Source != "/shop" || e.Type != "com.example.order" || e.Subject != "o/1" {
		t.Fatalf("got %+v, %v, want the attributes", e, err)
	}
	again, err := sensor.Parse(e.Document)
	if err != nil || string(again.Document) != string(e.Document) || !json.Valid(e.Document) || !strings.Contains(string(e.Document), `"note":"<&>","total":1.0`) && !strings.Contains(string(e.Document), `"total":1.0,"note":"<&>"`) {
		t.Errorf("got %s, %v, want %s", again.Document, err, e.Document)
	}
	if len(e.Key()) != 32 || e.Key() != again.Key() {
		t.Errorf("got key %q, want 32 digits of source and id", e.Key())
	}
	other := e
	other.Source, other.ID = "/shop4", "711"
	if other.Key() == e.Key() {
		t.Error("got the key of another source and id, want one of its own")
	}
}

func TestHostileEventsAreRefused(t *testing.T) {
	t.Parallel()
	const head = `{"specversion":"1.0","id":"1","source":"/s","type":"t"`
	for name, row := range map[string]struct{ document, field, want string }{
		"no object":          {`[]`, "", "malformed event"},
		"null":               {`null`, "", "malformed event"},
		"two values":         {head + `}{}`, "", "malformed event"},
		"invalid UTF-8":      {head + ",\"data\":\"\xff\"}", "", "invalid UTF-8"},
		"version 0.3":        {`{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, "specversion", `want "1.0"`},
		"no id":              {`{"specversion":"1.0","source":"/s","type":"t"}`, "id", "missing"},
		"id is null":         {`{"specversion":"1.0","id":null,"source":"/s","type":"t"}`, "id", "missing"},
		"id is a number":     {`{"specversion":"1.0","id":1,"source":"/s","type":"t"}`, "id", "want a text"},
		"id is an object":    {`{"specversion":"1.0","id":{"a":1},"source":"/s","type":"t"}`, "id", "an object or a list"},
		"empty id":           {`{"specversion":"1.0","id":"","source":"/s","type":"t"}`, "id", "empty"},
		"id with a line":     {`{"specversion":"1.0","id":"a\nb","source":"/s","type":"t"}`, "id", "control characters"},
		"id with a NUL":      {`{"specversion":"1.0","id":"a\u0000b","source":"/s","type":"t"}`, "id", "control characters"},
		"long id":            {`{"specversion":"1.0","id":"` + strings.Repeat("a", 2049) + `","source":"/s","type":"t"}`, "id", "2048"},
		"source with spaces": {`{"specversion":"1.0","id":"1","source":"a b","type":"t"}`, "source", "URI reference"},
		"bad source":         {`{"specversion":"1.0","id":"1","source":"://","type":"t"}`, "source", "URI reference"},
		"bad time":           {head + `,"time":"yesterday"}`, "time", "RFC 3339"},
		"bad type":           {head + `,"datacontenttype":"json;;"}`, "datacontenttype", "media type"},
		"name in capitals":   {head + `,"Shard":"1"}`, "Shard", "lower-case"},
		"name with a line":   {head + `,"a\nb":"1"}`, "a\nb", "lower-case"},
		"extension object":   {head + `,"shard":{}}`, "shard", "an object"},
		"empty subject":      {head + `,"subject":""}`, "subject", "empty"},
		"two data":           {head + `,"data":1,"data_base64":"AA=="}`, "data_base64", "one of them"},
		"bad base64":         {head + `,"data_base64":"A"}`, "data_base64", "base64"},
		"too large":          {head + `,"data":"` + strings.Repeat("x", 64<<10) + `"}`, "", "want at most 65536"},
	} {
		_, err := sensor.Parse([]byte(row.document))
		f := fault.Of(err)
		if err == nil || f.Field != row.field || !strings.Contains(f.Message, row.want) {
			t.Errorf("%s: got %v of %q, want %q of %q", name, err, f.Field, row.want, row.field)
		}
	}
	many := strings.Builder{}
	for i := range 70 {
		fmt.Fprintf(&many, `,"a%d":"1"`, i)
	}
	if _, err := sensor.Parse([]byte(head + many.String() + "}")); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("got %v for 74 attributes, want a refusal", err)
	}
}

func TestDataHasTheFormOfItsType(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ kind, data, want string }{
		"JSON":        {"application/json", ` {"a": 1} `, `"data":{"a":1}`},
		"more JSON":   {"application/vnd.order+json; charset=utf-8", `[1]`, `"data":[1]`},
		"text":        {"text/plain", `{"a"`, `"data":"{\"a\""`},
		"no type":     {"", "a", `"data":"a"`},
		"binary":      {"image/png", "\x89PNG\xff", `"data_base64":"iVBOR/8="`},
		"broken JSON": {"application/json", `{"a"`, ""},
	} {
		attributes := map[string]string{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
		if row.kind != "" {
			attributes["datacontenttype"] = row.kind
		}
		e, err := sensor.New(attributes, []byte(row.data))
		if (err == nil) != (row.want != "") || !strings.Contains(string(e.Document), row.want) {
			t.Errorf("%s: got %s, %v, want %s", name, e.Document, err, row.want)
		}
	}
	if _, err := sensor.New(map[string]string{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": "x"}, nil); err == nil {
		t.Error("got data as an attribute, want a refusal")
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	e := sensor.Event{Type: "com.example.order", Source: "/shop"}
	for name, row := range map[string]struct {
		filter sensor.CloudEvents
		want   bool
	}{
		"all":          {sensor.CloudEvents{}, true},
		"same":         {sensor.CloudEvents{Types: []string{"x", "com.example.order"}, Sources: []string{"/shop"}}, true},
		"prefix":       {sensor.CloudEvents{Types: []string{"com.example.*"}}, true},
		"other source": {sensor.CloudEvents{Types: []string{"*"}, Sources: []string{"/shops"}}, false},
		"no prefix":    {sensor.CloudEvents{Types: []string{"com.example"}}, false},
	} {
		if got := row.filter.Takes(e); got != row.want {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
}

// FuzzParse checks that an accepted event has a document that is the same event.
func FuzzParse(f *testing.F) {
	f.Add([]byte(order))
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AA=="}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		e, err := sensor.Parse(document)
		if err != nil {
			return
		}
		again, err := sensor.Parse(e.Document)
		if err != nil || again.Key() != e.Key() || string(again.Document) != string(e.Document) || len(e.Document) > sensor.MaxEvent {
			t.Errorf("got %s, %v, want %s", again.Document, err, e.Document)
		}
	})
}
