package sensor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The types of the events of polled items.
const (
	TypeObject  = "object"
	TypeMessage = "message"
)

// Object is an object of a bucket.
type Object struct {
	Key string `json:"key"`
	// ETag is that of the store, without quotes. It differs for another content.
	ETag string `json:"etag"`
	Size int64  `json:"size"`
	// ModifiedAt is a time of the clock of the store.
	ModifiedAt time.Time `json:"-"`
}

// Message is a message of a queue.
type Message struct {
	ID string
	// Receipt deletes the message.
	Receipt string
	Body    string
	// SentAt is a time of the clock of the queue; zero if it is unknown.
	SentAt time.Time
}

// Event returns the item as an event. Its id follows from the key and the ETag. Its subject is the
// key, in which control characters are percent-encoded; the data has the exact key. Fault: that of
// New.
func (o Object) Event(in Bucket) (Event, error) {
	sum := sha256.Sum256([]byte(o.Key))
	data, err := json.Marshal(struct {
		Bucket string `json:"bucket"`
		Object
	}{in.Name, o})
	if err != nil {
		return Event{}, fault.New(fault.InvalidRequest, "malformed object")
	}
	return New(map[string]string{
		"specversion": SpecVersion, "id": o.ETag + "-" + hex.EncodeToString(sum[:16]), "source": in.Source(), "type": TypeObject,
		"subject": printable(o.Key), "time": o.ModifiedAt.UTC().Format(time.RFC3339), "datacontenttype": "application/json",
	}, data)
}

// Event returns the item as an event. A body that is JSON is a JSON value, another one a string.
// Fault: that of New.
func (m Message) Event(in Queue) (Event, error) {
	attributes := map[string]string{"specversion": SpecVersion, "id": m.ID, "source": in.URL, "type": TypeMessage}
	if !m.SentAt.IsZero() {
		attributes["time"] = m.SentAt.UTC().Format(time.RFC3339)
	}
	if json.Valid([]byte(m.Body)) {
		attributes["datacontenttype"] = "application/json"
	}
	return New(attributes, []byte(m.Body))
}

// printable returns a key whose control characters are percent-encoded.
func printable(key string) string {
	if limit.Printable(key) {
		return key
	}
	var to strings.Builder
	for _, b := range []byte(key) {
		if b < ' ' || b == 0x7f || b == '%' {
			fmt.Fprintf(&to, "%%%02X", b)
		} else {
			to.WriteByte(b)
		}
	}
	return to.String()
}
