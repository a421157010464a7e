package dynamo

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// feedBytes are bytes in JSON: a string if they are text, otherwise an object with
// Base64.
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

type feedRecord struct {
	ID   string    `json:"id"`
	At   int64     `json:"at"` // in Unix nanoseconds
	Data feedBytes `json:"data"`
}

func batchOf(records []port.FeedRecord) feedBatch {
	b := feedBatch{make([]feedRecord, len(records))}
	for i, r := range records {
		b.Records[i] = feedRecord{r.ID, unixNanos(r.At), r.Data}
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
		records[i] = port.FeedRecord{Position: numberOf(is[attrFirst]) + int64(i), ID: r.ID, At: time.Unix(0, r.At).UTC(), Data: r.Data}
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
