package sqlite

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	stateless "github.com/klauspost/compress/flate"

	"github.com/sortie-dev/sortie/shared/port"
)

// The values of the column packed of a record. A new dictionary is a new value.
const (
	unpacked = 0
	// packed1 is compressed with feedDictionary1. The Base64 of a payload is stored decoded,
	// because Base64 hardly compresses.
	packed1 = 1
	// packed2 is compressed with feedDictionary1.
	packed2 = 2
	// A block has several records; see encodeBlock. packedBlock is one that is compressed
	// with feedDictionary1.
	unpackedBlock = 3
	packedBlock   = 4
)

// isBlock reports whether a form is that of a block.
func isBlock(form int) bool { return form >= unpackedBlock }

// feedDictionary1 contains the usual text of the events of runs. It is part of the stored
// format and never changes.
//
//go:embed feed_dictionary1.txt
var feedDictionary1 []byte

// eventStart is the start of an event without a DSSE envelope.
var eventStart = []byte(`{"schemaVersion":`)

// payloadStart precedes the Base64 of a payload in a DSSE envelope.
const payloadStart = `"payload":"`

// unpackers are reused, because one takes 40 KB. Compressors are not: clearing the tables of
// one takes longer than compressing an event.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// pack returns the stored form of the data of a record. It compresses events, and envelopes for
// which unpack returns the same bytes.
func pack(data []byte) (form int, stored []byte) {
	if bytes.HasPrefix(data, eventStart) {
		if to := deflate(nil, data); len(to) < len(data) {
			return packed2, to
		}
		return unpacked, blob(data)
	}
	start := bytes.Index(data, []byte(payloadStart)) + len(payloadStart)
	if start < len(payloadStart) {
		return unpacked, blob(data)
	}
	size := bytes.IndexByte(data[start:], '"')
	if size < 0 {
		return unpacked, blob(data)
	}
	payload, err := base64.StdEncoding.AppendDecode(make([]byte, 0, size), data[start:start+size])
	if err != nil || base64.StdEncoding.EncodeToString(payload) != string(data[start:start+size]) {
		return unpacked, blob(data)
	}
	to := deflate(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(start)), uint64(len(payload))), slices.Concat(data[:start], payload, data[start+size:]))
	if len(to) >= len(data) {
		return unpacked, blob(data)
	}
	return packed1, to
}

// deflate appends compressed data.
func deflate(to, data []byte) []byte {
	b := bytes.NewBuffer(to)
	_ = stateless.StatelessDeflate(b, data, true, feedDictionary1) //nolint:errcheck // a write to memory does not fail
	return b.Bytes()
}

// inflate is the reverse of deflate. It returns an error if the data is longer than most.
func inflate(from *bytes.Reader, most int64) ([]byte, error) {
	r := unpackers.Get().(io.Reader) //nolint:forcetypeassert // New returns nothing else
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(from, feedDictionary1); err != nil { //nolint:forcetypeassert // flate.NewReader documents it
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}

// unpack is the reverse of pack.
func unpack(form int, stored []byte) ([]byte, error) {
	switch form {
	case unpacked:
		return stored, nil
	case packed2:
		data, err := inflate(bytes.NewReader(stored), port.MaxFeedData)
		return data, damaged(err)
	case packed1:
	default:
		return nil, fmt.Errorf("unknown form %d of the data of a record", form)
	}
	from := bytes.NewReader(stored)
	start, err1 := binary.ReadUvarint(from)
	size, err2 := binary.ReadUvarint(from)
	data, err3 := inflate(from, port.MaxFeedData)
	if err := errors.Join(err1, err2, err3); err != nil || start > uint64(len(data)) || size > uint64(len(data))-start {
		return nil, damaged(errors.Join(errShort, err))
	}
	whole := make([]byte, 0, len(data)+len(data)/3+4)
	whole = append(whole, data[:start]...)
	whole = base64.StdEncoding.AppendEncode(whole, data[start:start+size])
	return append(whole, data[start+size:]...), nil
}

// errShort reports data that ends too early.
var errShort = errors.New("incomplete data")

func damaged(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("damaged data of a record: %w", err)
}
