package dynamo

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/port"
)

// TestRecordsOfAllFormsAreRead reads the documents of batches that some version writes:
// with data as text, in Base64, and with a decoded payload.
func TestRecordsOfAllFormsAreRead(t *testing.T) {
	t.Parallel()
	const at = 1_795_457_714_299_735_800
	for name, row := range map[string]struct{ record, data string }{
		"text":     {`"data":"{\"a\":1}"`, `{"a":1}`},
		"bytes":    {`"data":{"base64":"//8="}`, "\xff\xff"},
		"no bytes": {`"data":""`, ""},
		"payload":  {`"head":"{\"payload\":\"","payload":{"n":1.0,"t":"<&>"},"tail":"\"}"`, `{"payload":"eyJuIjoxLjAsInQiOiI8Jj4ifQ=="}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records, err := recordsIn(item{attrFirst: number(7), attrDoc: text(`{"records":[{"id":"r","at":1795457714299735800,` + row.record + `}]}`)})
			want := []port.FeedRecord{{Position: 7, ID: "r", At: time.Unix(0, at).UTC(), Data: []byte(row.data)}}
			if diff := cmp.Diff(want, records); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// TestDataIsStoredExactly stores signed events with a decoded payload. Data that only resembles
// them is stored unchanged.
func TestDataIsStoredExactly(t *testing.T) {
	t.Parallel()
	envelope := func(payload string) string {
		return `{"payloadType":"t","payload":"` + payload + `","signatures":[]}`
	}
	encoded := func(payload string) string { return envelope(base64.StdEncoding.EncodeToString([]byte(payload))) }
	for name, row := range map[string]struct {
		data    string
		decoded bool
	}{
		"signed event":         {encoded(`{"n":1.50,"t":"<a & b> \u2028 ü"}`), true},
		"empty object":         {encoded(`{}`), true},
		"empty":                {"", false},
		"empty payload":        {envelope(""), false},
		"spaces":               {encoded(`{"a": 1}`), false},
		"no object":            {encoded(`[1]`), false},
		"two objects":          {encoded(`{}{}`), false},
		"cut object":           {encoded(`{"a":`), false},
		"line break in Base64": {envelope("e30\n="), false},
		"no padding":           {envelope("e30"), false},
		"other last bits":      {envelope("e31="), false},
		"invalid text":         {encoded("{\"a\":\"\xff\"}"), false},
		"invalid text around":  {encoded(`{}`) + "\xff", false},
		"not ended":            {`{"payload":"e30=`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed, plain := stores(t)
			for _, s := range []*Store{packed, plain} {
				doc, err := s.pack(batchOf([]port.FeedRecord{{ID: "r", Data: []byte(row.data)}}))
				if err != nil {
					t.Fatal(err)
				}
				records, err := recordsIn(item{attrFirst: number(1), attrDoc: document(doc)})
				if err != nil || len(records) != 1 || string(records[0].Data) != row.data {
					t.Errorf("got %+v (%v), want %q", records, err, row.data)
				}
			}
			if got := recordOfData([]byte(row.data)).Payload != nil; got != row.decoded {
				t.Errorf("got decoded %t, want %t", got, row.decoded)
			}
		})
	}
}
