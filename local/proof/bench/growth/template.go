package growth

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// identity is what distinguishes a run from another of the same kind.
type identity struct {
	id                 string
	machine, execution string // their names
	created            time.Time
}

func identityOf(tenant, id string, created time.Time) identity {
	ref := run.Ref{Tenant: tenant, ID: id}
	return identity{id: id, machine: run.MachineName(ref, 1), execution: run.ExecutionName(ref, 1), created: created}
}

// template is a text about one run, which can be written for another.
type template []part

// part is a text, or one that differs for each run.
type part struct {
	kind kindOfPart
	text string
	at   time.Time
}

type kindOfPart int

const (
	fixed kindOfPart = iota
	runID
	machineName
	executionName
	moment
	eventID
)

// alphabet is that of ULIDs, whose first ulidTime characters are the time in milliseconds.
const (
	alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	ulidTime = 10
	ulidSize = 26
)

var changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|"eventId":"[` + alphabet + `]{26}"`)

// templateOf returns the template of a text about a run.
func templateOf(text string, of identity) (t template, err error) {
	const open = `"eventId":"`
	names := regexp.MustCompile(changing.String() + "|" + regexp.QuoteMeta(of.id) + "|" + regexp.QuoteMeta(of.machine) + "|" + regexp.QuoteMeta(of.execution))
	for text != "" {
		at := names.FindStringIndex(text)
		if at == nil {
			return append(t, part{text: text}), nil
		}
		found := text[at[0]:at[1]]
		t = append(t, part{text: text[:at[0]]})
		switch {
		case found == of.id:
			t = append(t, part{kind: runID})
		case found == of.machine:
			t = append(t, part{kind: machineName})
		case found == of.execution:
			t = append(t, part{kind: executionName})
		case strings.HasPrefix(found, open):
			at := time.UnixMilli(ulidMilli(found[len(open) : len(open)+ulidTime]))
			t = append(t, part{text: open}, part{kind: eventID, at: at}, part{text: `"`})
		default:
			p := part{kind: moment}
			if p.at, err = time.Parse(time.RFC3339Nano, found); err != nil {
				return nil, fmt.Errorf("unexpected time in a record: %w", err)
			}
			t = append(t, p)
		}
		text = text[at[1]:]
	}
	return t, nil
}

// write returns the text for another run. shift is the time between both.
func (t template) write(to []byte, as identity, shift time.Duration, random func() uint64) []byte {
	for i := range t {
		switch p := &t[i]; p.kind {
		case runID:
			to = append(to, as.id...)
		case machineName:
			to = append(to, as.machine...)
		case executionName:
			to = append(to, as.execution...)
		case moment:
			to = p.at.Add(shift).UTC().AppendFormat(to, time.RFC3339Nano)
		case eventID:
			to = appendULID(to, p.at.Add(shift), random)
		default:
			to = append(to, p.text...)
		}
	}
	return to
}

// appendULID appends a ULID of a time.
func appendULID(to []byte, at time.Time, random func() uint64) []byte {
	var text [ulidSize]byte
	milli := at.UnixMilli()
	for i := ulidTime - 1; i >= 0; i-- {
		text[i] = alphabet[milli&31]
		milli >>= 5
	}
	for i := ulidTime; i < ulidSize; {
		for bits, n := random(), 0; n < 12 && i < ulidSize; n, i = n+1, i+1 {
			text[i] = alphabet[bits&31]
			bits >>= 5
		}
	}
	return append(to, text[:]...)
}

func ulidMilli(text string) (milli int64) {
	for _, c := range text {
		milli = milli<<5 | int64(strings.IndexRune(alphabet, c))
	}
	return milli
}
