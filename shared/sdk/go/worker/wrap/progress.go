//go:build unix

package wrap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// note is one line of progress. An absent member changes nothing.
type note struct {
	ProgressPct     *float64            `json:"progressPct"`
	Message         *string             `json:"message"`
	Phase           string              `json:"phase"`
	RowCount        *int64              `json:"rowCount"`
	PartialProgress json.RawMessage     `json:"partialProgress"`
	Metrics         json.RawMessage     `json:"metrics"`
	Error           *contract.TaskError `json:"error"`
}

// maxLine is the largest length of a line of progress. A longer line is skipped.
const maxLine = 64 << 10

// parseNote reads "45 message", "45% message", "45" or a JSON object. It returns
// false for anything else.
func parseNote(line string) (note, bool) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "{") {
		var n note
		if json.Unmarshal([]byte(line), &n) != nil {
			return note{}, false
		}
		if n.Metrics != nil && !bytes.HasPrefix(n.Metrics, []byte("{")) {
			n.Metrics = nil
		}
		return n, true
	}
	number, message, _ := strings.Cut(line, " ")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(number, "%"), 64)
	if err != nil || percent != percent {
		return note{}, false
	}
	message = strings.TrimSpace(message)
	return note{ProgressPct: &percent, Message: &message}, true
}

// readNotes calls apply for every valid line.
func readNotes(from io.Reader, apply func(note)) {
	lines := bufio.NewReaderSize(from, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err == nil || err == io.EOF { //nolint:errorlint // a bufio.Reader returns io.EOF unwrapped
			if n, ok := parseNote(string(line)); ok {
				apply(n)
			}
		}
		for err == bufio.ErrBufferFull { //nolint:errorlint // likewise
			_, err = lines.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}
