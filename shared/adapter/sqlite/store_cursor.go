package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// list identifies a list: its kind with the version of its cursors, its owner, and its filter.
type list struct {
	kind, scope string
	state       run.State
}

// listOf returns the list of runs to which the page belongs.
func listOf(tenant string, page port.Page) list {
	if page.JobID != "" {
		return list{"runs of a job 1", tenant + "/" + run.Listed(page.JobID, page.Children), page.State}
	}
	return list{"runs 1", tenant, page.State}
}

// cursorSum is the length of the hash in a cursor in bytes. A cursor is the position of the
// last entry of a page and a prefix of a hash over the position and its list. The hash detects
// truncated and mistyped cursors and those of other lists. It protects no secret: a list
// contains only entries of its tenant, wherever it starts.
const cursorSum = 8

var cursorText = base64.RawURLEncoding.Strict()

func (l list) cursor(place []byte) string {
	return cursorText.EncodeToString(append(bytes.Clone(place), l.sum(place)...))
}

// after returns the place in a cursor, nil for an empty cursor, or a fault.
func (l list) after(cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := cursorText.DecodeString(cursor)
	if err == nil && len(raw) > cursorSum {
		// The decoder ignores line breaks, which no cursor has.
		if place := raw[:len(raw)-cursorSum]; l.cursor(place) == cursor {
			return place, nil
		}
	}
	return nil, fault.Invalid("cursor", "not a cursor of this list")
}

func (l list) sum(place []byte) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "list of %s: %x %q %q", l.kind, place, l.scope, l.state))
	return sum[:cursorSum]
}

func checkLimit(page port.Page) error {
	if page.Limit < 1 || page.Limit > 1000 {
		return fault.Invalid("limit", "want 1 to 1000")
	}
	return nil
}

// place is the position of a run in its tenant's list: its creation time and
// row number.
type place struct{ created, n int64 }

func (p place) bytes() []byte {
	raw := binary.BigEndian.AppendUint64(nil, uint64(p.created)) //nolint:gosec // keeps the bits
	return binary.BigEndian.AppendUint64(raw, uint64(p.n))       //nolint:gosec // keeps the bits
}

// placeOf is the reverse of bytes.
func placeOf(raw []byte) place {
	return place{
		created: int64(binary.BigEndian.Uint64(raw)),     //nolint:gosec // keeps the bits
		n:       int64(binary.BigEndian.Uint64(raw[8:])), //nolint:gosec // keeps the bits
	}
}
