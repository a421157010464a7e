package dynamo

import (
	stdbytes "bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/run"
)

// dictionary1 is what a record and its events usually hold. It is part of the
// format of what is stored, and so it never changes; a better one is another
// number.
//
//go:embed dictionary1.txt
var dictionary1 []byte

// The first byte tells the format of what was packed with dictionary1.
const (
	packed1      = 1
	packedEvent1 = 2
)

// maxUnpacked is far above what an item of 400 KB can hold, and keeps a damaged
// one from filling the memory.
const maxUnpacked = 64 << 20

// pack is the value's JSON, compressed: each kilobyte of an item is paid for
// with each write.
func pack(v any) ([]byte, error) { return deflate([]byte{packed1}, v) }

func deflate(head []byte, v any) ([]byte, error) {
	to := stdbytes.NewBuffer(head)
	w, err := flate.NewWriterDict(to, flate.BestCompression, dictionary1)
	if err != nil {
		return nil, err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

func unpack(packed []byte, v any) error {
	if len(packed) == 0 || packed[0] != packed1 {
		return errors.New("it is not packed as this version can read it")
	}
	return inflate(packed[1:], v)
}

func inflate(packed []byte, v any) error {
	doc, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(stdbytes.NewReader(packed), dictionary1), maxUnpacked))
	if err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	return json.Unmarshal(doc, v)
}

// eventHead is how many bytes stand before the JSON of a packed event: the
// format, the id and the time, which are half of an event and do not compress.
const eventHead = 1 + len(ulid.ULID{}) + 8

// packEvent is pack for an event whose id is a ULID and whose time has a number;
// any other is packed like anything.
func packEvent(e run.Event) ([]byte, error) {
	id, err := ulid.ParseStrict(e.ID)
	at := time.Unix(0, e.At.UnixNano()).UTC()
	if err != nil || id.String() != e.ID || at != e.At {
		return pack(e)
	}
	head := append(append(make([]byte, 0, 64), packedEvent1), id[:]...)
	head = binary.BigEndian.AppendUint64(head, uint64(e.At.UnixNano()))
	e.ID, e.At = "", time.Time{}
	return deflate(head, e)
}

func unpackEvent(packed []byte) (e run.Event, err error) {
	if len(packed) < eventHead || packed[0] != packedEvent1 {
		return e, unpack(packed, &e)
	}
	if err := inflate(packed[eventHead:], &e); err != nil {
		return e, err
	}
	e.ID = ulid.ULID(packed[1 : eventHead-8]).String()
	e.At = time.Unix(0, int64(binary.BigEndian.Uint64(packed[eventHead-8:]))).UTC() //nolint:gosec // keeps the bits
	return e, nil
}
