// Package format encodes the records and events that the DynamoDB adapter stores, without the
// SDK: as JSON compressed with a fixed dictionary, or as plain JSON. Every version reads all
// formats. Inspect decodes an item of the table for people.
package format

import (
	stdbytes "bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/base/encoded"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// The dictionaries contain the usual text of a record and its events. They are part of the
// stored format and never change: a better one is a new format.
//
//go:embed dictionary1.txt
var dictionary1 []byte

//go:embed dictionary2.txt
var dictionary2 []byte

//go:embed dictionary3.txt
var dictionary3 []byte

//go:embed dictionary4.txt
var dictionary4 []byte

// The first byte of a stored document is its format. New documents use dictionary4.
// dictionary2 has the field names and event types of version 0.1, dictionary3 those of
// jobs too, dictionary4 those of published events and of reports.
const (
	packed1      = 1
	packedEvent1 = 2
	packed2      = 3
	packedEvent2 = 4
	packed3      = 5
	packedEvent3 = 6
	packed4      = 7
	packedEvent4 = 8
	plain        = '{' // a JSON object as it is; see Plain
)

// maxUnpacked is far above what an item of 400 KB can contain. It bounds the
// memory that a damaged item takes.
const maxUnpacked = 64 << 20

// Encode returns the value's JSON without HTML escapes.
func Encode(v any) ([]byte, error) { return encoded.Any(nil, v) }

// Pack returns the value's JSON, compressed because each write is charged by the kilobyte of
// the item.
func Pack(v any) ([]byte, error) { return deflate([]byte{packed4}, v) }

func deflate(head []byte, v any) ([]byte, error) {
	doc, err := Encode(v)
	if err != nil {
		return nil, err
	}
	to := stdbytes.NewBuffer(head)
	w := writers.Get().(*flate.Writer) //nolint:forcetypeassert // New returns nothing else
	defer writers.Put(w)
	w.Reset(to)
	if _, err := w.Write(doc); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// writers and inflaters are reused: a writer takes 1.2 MB, a reader 40 KB.
var (
	writers = sync.Pool{New: func() any {
		w, err := flate.NewWriterDict(nil, flate.BestCompression, dictionary4)
		if err != nil {
			panic(err) // the level is valid
		}
		return w
	}}
	inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}
)

// Plain reports whether a document is uncompressed JSON.
func Plain(doc []byte) bool { return len(doc) > 0 && doc[0] == plain }

// Unpack decodes a document of any format into v, which must be zero.
func Unpack(packed []byte, v any) error {
	if len(packed) == 0 {
		return errors.New("empty document")
	}
	switch packed[0] {
	case plain:
		return decode(packed, v)
	case packed1:
		return inflate(packed[1:], dictionary1, v)
	case packed2:
		return inflate(packed[1:], dictionary2, v)
	case packed3:
		return inflate(packed[1:], dictionary3, v)
	case packed4:
		return inflate(packed[1:], dictionary4, v)
	}
	return fmt.Errorf("unknown format %d of a stored document", packed[0])
}

func inflate(packed, dictionary []byte, v any) error {
	r := inflaters.Get().(io.Reader) //nolint:forcetypeassert // New returns nothing else
	defer inflaters.Put(r)
	err := r.(flate.Resetter).Reset(stdbytes.NewReader(packed), dictionary) //nolint:forcetypeassert // flate.NewReader documents it
	doc := stdbytes.NewBuffer(make([]byte, 0, usualRatio*len(packed)))
	if err == nil {
		_, err = doc.ReadFrom(io.LimitReader(r, maxUnpacked))
	}
	if err != nil {
		return fmt.Errorf("damaged document: %w", err)
	}
	return decode(doc.Bytes(), v)
}

// usualRatio is above the usual ratio of a document to its compressed form.
const usualRatio = 6

// decode is like json.Unmarshal, which would scan the document of a json.Unmarshaler twice more
// before it calls its method.
func decode(doc []byte, v any) error {
	if r, ok := v.(*run.Run); ok {
		return encoded.Decode(doc, r)
	}
	if own, ok := v.(json.Unmarshaler); ok {
		return own.UnmarshalJSON(doc)
	}
	return json.Unmarshal(doc, v)
}

// eventHead is the number of bytes before the JSON of a packed event: the format,
// the id and the time, which are half of an event and do not compress.
const eventHead = 1 + len(ulid.ULID{}) + 8

// PackEvent is Pack for events. An event whose id is not a ULID, or whose time
// does not fit into 64 bits of nanoseconds, is packed as a whole.
func PackEvent(e run.Event) ([]byte, error) {
	id, err := ulid.ParseStrict(e.ID)
	at := time.Unix(0, e.At.UnixNano()).UTC()
	if err != nil || id.String() != e.ID || at != e.At {
		return Pack(e)
	}
	head := append(append(make([]byte, 0, 64), packedEvent4), id[:]...)
	head = binary.BigEndian.AppendUint64(head, uint64(e.At.UnixNano()))
	e.ID, e.At = "", time.Time{}
	return deflate(head, e)
}

// UnpackEvent decodes an event that PackEvent, Pack or Encode returned.
func UnpackEvent(packed []byte) (e run.Event, err error) {
	var dictionary []byte
	if len(packed) >= eventHead {
		dictionary = map[byte][]byte{packedEvent1: dictionary1, packedEvent2: dictionary2, packedEvent3: dictionary3, packedEvent4: dictionary4}[packed[0]]
	}
	if dictionary == nil {
		return e, Unpack(packed, &e)
	}
	if err := inflate(packed[eventHead:], dictionary, &e); err != nil {
		return e, err
	}
	e.ID = ulid.ULID(packed[1 : eventHead-8]).String()
	e.At = time.Unix(0, int64(binary.BigEndian.Uint64(packed[eventHead-8:]))).UTC() //nolint:gosec // keeps the bits
	return e, nil
}
