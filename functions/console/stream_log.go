package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// logChunk is the size in bytes from which lines are sent without a wait for those that follow.
const logChunk = 64 << 10

// hasLine reports whether a whole line can be read without waiting.
func hasLine(from *bufio.Reader) bool {
	waiting, _ := from.Peek(from.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

// followLog serves the lines of the log of an attempt that follow a line, as they come: one list
// item per line of text, as the page of the run has them. It ends with the attempt, the run or
// the session.
func (c *console) followLog(w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	attempt, err := httpkit.IntQuery(r, "attempt", 1, 1<<31-1, 1)
	if err != nil {
		return err
	}
	after, err := httpkit.IntQuery(r, "after", 0, 1<<31-1, 0)
	if err != nil {
		return err
	}
	ctx, end := c.untilSignOut(v)
	defer end()
	v.Request = r.WithContext(ctx)
	query := url.Values{"follow": {"true"}, "attempt": {r.URL.Query().Get("attempt")}}
	response, err := v.Call(http.MethodGet, "/v1/tasks/"+url.PathEscape(r.PathValue("run_id"))+"/logs", query, nil, http.Header{"Accept": {"application/x-ndjson"}})
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return page.Read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	var html bytes.Buffer
	log := &logView{Attempt: attempt}
	log.each = func(line logLine) {
		if line.Number > after {
			_ = log.item(line).Render(&html) // a buffer returns no error
			html.WriteByte('\n')
		}
	}
	lines := bufio.NewReaderSize(response.Body, logChunk)
	for {
		text, err := lines.ReadBytes('\n')
		var line contract.LogLine
		if json.Unmarshal(text, &line) != nil || line.Ended || line.Attempt != attempt {
			return nil
		}
		log.add(line)
		if err == nil && html.Len() < logChunk && hasLine(lines) {
			continue
		}
		if html.Len() > 0 && writeAll(w, html.Bytes(), flush) != nil || err != nil {
			return nil //nolint:nilerr // the reader or the log has ended
		}
		html.Reset()
	}
}

func writeAll(w http.ResponseWriter, text []byte, flush func() error) error {
	if _, err := w.Write(text); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the reader has left")
	}
	return flush()
}
