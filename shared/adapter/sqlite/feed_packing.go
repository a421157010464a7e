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
	"zombiezen.com/go/sqlite"

	"github.com/sortie-dev/sortie/shared/port"
)

// The values of the column packed of a record. A new dictionary is a new value.
const (
	unpacked = 0
	// packed1 is compressed with feedDictionary1. The Base64 of a payload is stored decoded,
	// because Base64 hardly compresses.
	packed1 = 1
)

// feedDictionary1 has what the events of runs usually contain. It is part of the stored
// format and never changes.
//
//go:embed feed_dictionary1.txt
var feedDictionary1 []byte

// payloadStart is what precedes the Base64 of a payload in a DSSE envelope.
const payloadStart = `"payload":"`

// unpackers are reused: one takes 40 KB. Nothing is kept to compress, since the tables of a
// compressor take longer to clear than an event to compress.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// pack returns the stored form of the data of a record. Only an envelope is compressed, if
// unpack returns the same bytes for it.
func pack(data []byte) (form int, stored []byte) {
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
	var to bytes.Buffer
	to.Write(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(start)), uint64(len(payload))))
	err = stateless.StatelessDeflate(&to, slices.Concat(data[:start], payload, data[start+size:]), true, feedDictionary1)
	if err != nil || to.Len() >= len(data) {
		return unpacked, blob(data)
	}
	return packed1, to.Bytes()
}

// unpack is the reverse of pack.
func unpack(form int, stored []byte) ([]byte, error) {
	switch form {
	case unpacked:
		return stored, nil
	case packed1:
	default:
		return nil, fmt.Errorf("unknown form %d of the data of a record", form)
	}
	from := bytes.NewReader(stored)
	start, err1 := binary.ReadUvarint(from)
	size, err2 := binary.ReadUvarint(from)
	r := unpackers.Get().(io.Reader) //nolint:forcetypeassert // New returns nothing else
	defer unpackers.Put(r)
	err3 := r.(flate.Resetter).Reset(from, feedDictionary1) //nolint:forcetypeassert // flate.NewReader documents it
	data, err4 := io.ReadAll(io.LimitReader(r, port.MaxFeedData+1))
	if err := errors.Join(err1, err2, err3, err4); err != nil || start > uint64(len(data)) || size > uint64(len(data))-start {
		return nil, errors.Join(errors.New("damaged data of a record"), err)
	}
	whole := make([]byte, 0, len(data)+len(data)/3+4)
	whole = append(whole, data[:start]...)
	whole = base64.StdEncoding.AppendEncode(whole, data[start:start+size])
	return append(whole, data[start+size:]...), nil
}

// addUnpack adds the function unpacked(packed, data) to a connection.
func addUnpack(conn *sqlite.Conn) error {
	return conn.CreateFunction("unpacked", &sqlite.FunctionImpl{
		NArgs: 2, Deterministic: true,
		Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
			data, err := unpack(args[0].Int(), args[1].Blob())
			if err != nil {
				return sqlite.Value{}, err
			}
			return sqlite.BlobValue(data), nil
		},
	})
}
