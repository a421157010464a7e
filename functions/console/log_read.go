package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// logQuery are the query parameters that select lines of a log.
var logQuery = []string{"q", "level", "stream", "line"}

// searchedText is the size of the longest text that a search can have, in bytes.
const searchedText = 200

// filterOf reads the query parameters of logQuery.
func filterOf(r *http.Request) (f logFilter, err error) {
	query := r.URL.Query()
	if f.Text = strings.TrimSpace(query.Get("q")); len(f.Text) > searchedText {
		return f, fault.Invalid("q", "the text has %d bytes, want at most %d", len(f.Text), searchedText)
	}
	if f.Stream = query.Get("stream"); f.Stream != "" && !slices.Contains(livelog.Streams(), livelog.Stream(f.Stream)) {
		return f, fault.Invalid("stream", "unknown stream, want one of %v", livelog.Streams())
	}
	if name := query.Get("level"); name != "" {
		for _, known := range levelNames {
			if known.Name == name {
				f.Level = known.Level
			}
		}
		if f.Level == 0 {
			return f, fault.Invalid("level", "unknown level, want error, warn or info")
		}
	}
	if query.Get("line") != "" { // an empty field of the form
		f.Line, err = httpkit.IntQuery(r, "line", 1, 1<<31-1, 0)
	}
	return f, err
}

// readLog reads the log of the attempt in the query, by default that of the last one.
func (d *runData) readLog(v *page.Visit) error {
	filter, err := filterOf(v.Request)
	if err != nil || d.Attempt == 0 || d.Inference != nil {
		return err
	}
	query := url.Values{}
	if attempt := v.Request.URL.Query().Get("attempt"); attempt != "" {
		query.Set("attempt", attempt)
	}
	path := "/v1/tasks/" + url.PathEscape(d.TaskID) + "/logs"
	response, err := v.Call(http.MethodGet, path, query, nil, http.Header{"Accept": {"application/x-ndjson"}})
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err := page.Read(response, nil)
		if p := page.ProblemOf(err); p != nil && p.Body.Status == http.StatusNotFound && query.Get("attempt") == "" {
			return nil
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	d.Log = &logView{Path: ui.WithQuery(path, query), Ended: response.Header.Get("X-Log-Ended") == "true", Filter: filter}
	d.Log.Attempt, _ = strconv.Atoi(response.Header.Get("X-Attempt"))
	lines := bufio.NewReader(io.LimitReader(response.Body, page.AnswerLimit))
	for {
		text, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var line contract.LogLine
			if err := json.Unmarshal(text, &line); err != nil {
				return fmt.Errorf("cannot read a log: %w", err)
			}
			d.Log.add(line)
		}
		if err != nil {
			d.Log.end()
			return nil //nolint:nilerr // what has arrived is shown
		}
	}
}
