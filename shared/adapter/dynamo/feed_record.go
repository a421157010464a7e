package dynamo

import (
	stdbytes "bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// feedBytes is encoded as a JSON string if it is text and the string is not longer than Base64.
// Otherwise it is encoded as an object with Base64.
type feedBytes []byte

type base64Bytes struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (b feedBytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		doc, err := format.Encode(string(b))
		// Escapes may take more than Base64, which takes four bytes for three.
		if err != nil || len(doc) <= 2+len(b)+len(b)/3 {
			return doc, err
		}
	}
	return json.Marshal(base64Bytes{b})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *feedBytes) UnmarshalJSON(doc []byte) error {
	if len(doc) > 0 && doc[0] == '"' {
		var s string
		err := json.Unmarshal(doc, &s)
		*b = feedBytes(s)
		return err
	}
	var v base64Bytes
	err := json.Unmarshal(doc, &v)
	*b = v.Base64
	return err
}

// feedBatch is the document of a batch.
type feedBatch struct {
	Records []feedRecord `json:"records"`
}

// feedRecord has either Data, or Head, Payload and Tail. The latter is for data with a JSON
// object in Base64, as in a DSSE envelope. The payload is stored decoded, because Base64 hardly
// compresses.
type feedRecord struct {
	ID      string          `json:"id"`
	At      int64           `json:"at"` // in Unix nanoseconds
	Data    *feedBytes      `json:"data,omitempty"`
	Head    string          `json:"head,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Tail    string          `json:"tail,omitempty"`
}

// payloadStart precedes the Base64 of a payload.
const payloadStart = `"payload":"`

// recordOfData returns a record with data. It stores the payload decoded only if the method
// data returns the same bytes.
func recordOfData(data []byte) feedRecord {
	whole := feedRecord{Data: (*feedBytes)(&data)}
	start := stdbytes.Index(data, []byte(payloadStart)) + len(payloadStart)
	if start < len(payloadStart) || !utf8.Valid(data) {
		return whole
	}
	size := stdbytes.IndexByte(data[start:], '"')
	if size < 0 {
		return whole
	}
	payload, err := base64.StdEncoding.DecodeString(string(data[start : start+size]))
	var compact stdbytes.Buffer
	if err != nil || len(payload) == 0 || payload[0] != '{' || !utf8.Valid(payload) || json.Compact(&compact, payload) != nil ||
		!stdbytes.Equal(compact.Bytes(), payload) {
		return whole
	}
	r := feedRecord{Head: string(data[:start]), Payload: payload, Tail: string(data[start+size:])}
	if !stdbytes.Equal(r.data(), data) { // another Base64 of the payload
		return whole
	}
	return r
}

func (r feedRecord) data() []byte {
	switch {
	case r.Data != nil:
		return *r.Data
	case r.Payload == nil:
		return nil
	}
	return []byte(r.Head + base64.StdEncoding.EncodeToString(r.Payload) + r.Tail)
}

func batchOf(records []port.FeedRecord) feedBatch {
	b := feedBatch{make([]feedRecord, len(records))}
	for i, r := range records {
		b.Records[i] = recordOfData(r.Data)
		b.Records[i].ID, b.Records[i].At = r.ID, unixNanos(r.At)
	}
	return b
}

// recordsIn returns the records of the item of a batch.
func recordsIn(is item) ([]port.FeedRecord, error) {
	var b feedBatch
	if err := unpack(is, &b); err != nil {
		return nil, err
	}
	records := make([]port.FeedRecord, len(b.Records))
	for i, r := range b.Records {
		records[i] = port.FeedRecord{Position: numberOf(is[attrFirst]) + int64(i), ID: r.ID, At: time.Unix(0, r.At).UTC(), Data: r.data()}
	}
	return records, nil
}

// recordsIn returns the records of the item of a batch, which is read for each webhook. The
// caller may change the records, and not their data.
func (f *Feed) recordsIn(is item) ([]port.FeedRecord, error) {
	doc := documentOf(is[attrDoc])
	known, ok := f.store.decoded.batches.Get(doc)
	if !ok {
		var err error
		if known, err = recordsIn(is); err != nil {
			return nil, err
		}
		f.store.decoded.batches.Put(doc, &known)
	}
	records := slices.Clone(known)
	for i := range records {
		records[i].Position = numberOf(is[attrFirst]) + int64(i)
	}
	return records, nil
}

// unpack decodes the document of an item of a stream.
func unpack(is item, v any) error {
	if err := format.Unpack(documentOf(is[attrDoc]), v); err != nil {
		return fault.Wrap(err, fault.Internal, "unreadable item of a stream")
	}
	return nil
}
