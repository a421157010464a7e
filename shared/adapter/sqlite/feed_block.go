package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/sortie-dev/sortie/shared/port"
)

// A row of feed_records has one record, or a block of adjacent records of a batch. A block is
// one row to write and to compress, and its records repeat less text. It is read as a whole, so
// its size is limited.
//
// The position of a row is that of its last record. count is the number of its last records
// that are not deleted.
const (
	blockRecords = 32
	blockBytes   = 24 << 10
	// mostBlock is more than an encoded block: one record may be larger than blockBytes.
	mostBlock = 2 * port.MaxFeedBatch
)

// feedRow is a row of feed_records.
type feedRow struct {
	position, at int64
	count, form  int
	id           string
	data         []byte
}

// rowsOf returns the rows of the records of a batch.
func rowsOf(b port.Batch) (rows []feedRow) {
	for first := 0; first < len(b.Records); {
		size, n := 0, 0
		for _, r := range b.Records[first:] {
			if size += r.Size(); n > 0 && (size > blockBytes || isSigned(r)) || n == blockRecords {
				break
			}
			if n++; isSigned(r) {
				break
			}
		}
		row := feedRow{position: b.After + int64(first+n), count: n}
		if n == 1 {
			r := b.Records[first]
			row.at, row.id = nanos(r.At), r.ID
			row.form, row.data = pack(r.Data)
		} else {
			row.form, row.data = packBlock(b.Records[first : first+n])
		}
		rows, first = append(rows, row), first+n
	}
	return rows
}

// isSigned reports whether a record is a DSSE envelope. It has a separate row, because its
// signature and its Base64 hardly compress with others; see pack.
func isSigned(r port.FeedRecord) bool { return bytes.HasPrefix(r.Data, []byte(`{"payload`)) }

// packBlock returns the stored form of a block. Only events are compressed: other records are
// short-lived, or read while they are written.
func packBlock(records []port.FeedRecord) (form int, stored []byte) {
	block := encodeBlock(records)
	if bytes.HasPrefix(records[0].Data, eventStart) {
		if packed := deflate(nil, block); len(packed) < len(block) {
			return packedBlock, packed
		}
	}
	return unpackedBlock, block
}

// encodeBlock encodes for each record its id, the difference of its time to that of the record
// before, and its data. Lengths precede the id and the data. Numbers are varints.
func encodeBlock(records []port.FeedRecord) []byte { return appendBlock(nil, records) }

// appendBlock appends the result of encodeBlock.
func appendBlock(block []byte, records []port.FeedRecord) []byte {
	size := 0
	for _, r := range records {
		size += len(r.ID) + len(r.Data) + 3*binary.MaxVarintLen64
	}
	block = slices.Grow(block, size)
	last := int64(0)
	for _, r := range records {
		block = append(binary.AppendUvarint(block, uint64(len(r.ID))), r.ID...)
		block = binary.AppendVarint(block, nanos(r.At)-last)
		block = append(binary.AppendUvarint(block, uint64(len(r.Data))), r.Data...)
		last = nanos(r.At)
	}
	return block
}

// decodeBlock is the reverse of encodeBlock.
func decodeBlock(block []byte) (records []port.FeedRecord, err error) {
	last := int64(0)
	part := func() (text []byte) {
		size, n := binary.Uvarint(block)
		if n <= 0 || size > uint64(len(block)-n) { //nolint:gosec // n is at most the length
			err = errShort
			return nil
		}
		text, block = block[n:n+int(size)], block[n+int(size):] //nolint:gosec // size is at most the length
		return text
	}
	for len(block) > 0 {
		r := port.FeedRecord{ID: string(part())}
		since, n := binary.Varint(block)
		if err != nil || n <= 0 {
			return nil, damaged(errShort)
		}
		last, block = last+since, block[n:]
		r.At, r.Data = time.Unix(0, last).UTC(), part()
		records = append(records, r)
	}
	return records, damaged(err)
}

// records returns the records of the row.
func (r *feedRow) records() (records []port.FeedRecord, err error) {
	switch block := r.data; {
	case !isBlock(r.form):
		data, err := unpack(r.form, r.data)
		return []port.FeedRecord{{Position: r.position, ID: r.id, At: time.Unix(0, r.at).UTC(), Data: data}}, err
	case r.form > packedBlock:
		return nil, fmt.Errorf("unknown form %d of the data of records", r.form)
	case r.form == packedBlock:
		if block, err = inflate(bytes.NewReader(r.data), mostBlock); err != nil {
			return nil, damaged(err)
		}
		fallthrough
	default:
		if records, err = decodeBlock(block); err == nil && len(records) < r.count {
			err = damaged(errShort)
		}
	}
	if err != nil {
		return nil, err
	}
	records = records[len(records)-r.count:]
	for i := range records {
		records[i].Position = r.position - int64(r.count-1-i)
	}
	return records, nil
}

// addRecords adds the function records(packed, count, position, id, at, data) to a connection.
// It returns the records of a row as a JSON array.
func addRecords(conn *sqlite.Conn) error {
	const columns = 6
	return conn.CreateFunction("records", &sqlite.FunctionImpl{
		NArgs: columns, Deterministic: true,
		Scalar: func(_ sqlite.Context, args []sqlite.Value) (none sqlite.Value, err error) {
			row := feedRow{
				form: args[0].Int(), count: args[1].Int(), position: args[2].Int64(), id: args[3].Text(), at: args[4].Int64(), data: args[5].Blob(),
			}
			records, err := row.records()
			if err != nil {
				return none, err
			}
			type shown struct {
				Position int64  `json:"position"`
				ID       string `json:"id"`
				At       int64  `json:"at"`
				Bytes    int    `json:"bytes"`
				Data     string `json:"data"`
			}
			all := make([]shown, len(records))
			for i, r := range records {
				all[i] = shown{r.Position, r.ID, nanos(r.At), len(r.Data), string(r.Data)}
			}
			text, err := json.Marshal(all)
			return sqlite.TextValue(string(text)), err
		},
	})
}
