package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
)

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
	ctx, end := v.untilSignOut()
	defer end()
	v.r = r.WithContext(ctx)
	query := url.Values{"follow": {"true"}, "attempt": {r.URL.Query().Get("attempt")}}
	response, err := v.call(http.MethodGet, "/v1/tasks/"+url.PathEscape(r.PathValue("run_id"))+"/logs", query, nil, http.Header{"Accept": {"application/x-ndjson"}})
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	log := &logView{Attempt: attempt, after: after}
	lines := bufio.NewReader(response.Body)
	for {
		text, err := lines.ReadBytes('\n')
		var line contract.LogLine
		if json.Unmarshal(text, &line) != nil || line.Ended || line.Attempt != attempt {
			return nil
		}
		log.add(line)
		if html, failed := log.items(); failed != nil || len(html) > 0 && writeAll(w, html, flush) != nil || err != nil {
			return failed
		}
	}
}

func writeAll(w http.ResponseWriter, text []byte, flush func() error) error {
	if _, err := w.Write(text); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the reader has left")
	}
	return flush()
}

// items returns the items of the complete lines that were not returned before.
func (l *logView) items() ([]byte, error) {
	var text bytes.Buffer
	for _, line := range l.Lines {
		if line.Number > l.after {
			l.after = line.Number
			if err := l.item(line).Render(&text); err != nil {
				return nil, err
			}
			text.WriteByte('\n')
		}
	}
	return text.Bytes(), nil
}
