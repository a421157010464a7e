package sqlite

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/sortie-dev/sortie/shared/run"
)

// place is the position of a run in its tenant's list: its creation time and
// row number.
type place struct{ created, n int64 }

// A cursor is the place of the last run of a page and a prefix of a hash over
// it and its list. The hash detects truncated and mistyped cursors and those of
// other lists. It protects no secret: a list shows only its tenant's runs,
// wherever it starts.
const (
	placeSize  = 16
	cursorSum  = 8
	cursorSize = placeSize + cursorSum
)

var cursorText = base64.RawURLEncoding.Strict()

func (p place) cursor(tenant string, state run.State) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(p.created)) //nolint:gosec // keeps the bits
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.n))        //nolint:gosec // keeps the bits
	return cursorText.EncodeToString(append(raw, sumOf(raw, tenant, state)...))
}

func placeOf(cursor, tenant string, state run.State) (place, bool) {
	raw, err := cursorText.DecodeString(cursor)
	if err != nil || len(raw) != cursorSize {
		return place{}, false
	}
	p := place{
		created: int64(binary.BigEndian.Uint64(raw)),     //nolint:gosec // keeps the bits
		n:       int64(binary.BigEndian.Uint64(raw[8:])), //nolint:gosec // keeps the bits
	}
	// The decoder ignores line breaks, which no cursor has.
	return p, p.cursor(tenant, state) == cursor
}

func sumOf(raw []byte, tenant string, state run.State) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "list of runs 1: %x %q %q", raw, tenant, state))
	return sum[:cursorSum]
}
