package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// LogPosition is a position in the logs of a task.
type LogPosition struct {
	// Attempt is the number of an attempt; 0 means the latest.
	Attempt int
	// Offset is in bytes.
	Offset int64
	// Stream selects stdout or stderr; empty selects both.
	Stream string
}

func (p LogPosition) query() url.Values {
	q := url.Values{}
	if p.Attempt > 0 {
		q.Set("attempt", strconv.Itoa(p.Attempt))
	}
	if p.Offset > 0 {
		q.Set("offset", strconv.FormatInt(p.Offset, 10))
	}
	if p.Stream != "" {
		q.Set("stream", p.Stream)
	}
	return q
}

// Log is the output of a worker so far.
type Log struct {
	Attempt int
	Lines   []contract.LogLine
	// Ended reports that the log is complete.
	Ended bool
}

const typeLines = "application/x-ndjson"

// Log reads the log of an attempt.
func (c *Client) Log(ctx context.Context, taskID string, from LogPosition) (Log, error) {
	what := call{
		method: http.MethodGet, path: taskPath(taskID, "logs"), query: from.query(), repeat: true,
		header: http.Header{"Accept": {typeLines}},
	}
	var text []byte
	header, err := c.do(ctx, what, &text)
	if err != nil {
		return Log{}, err
	}
	log := Log{Ended: header.Get("X-Log-Ended") == "true"}
	log.Attempt, _ = strconv.Atoi(header.Get("X-Attempt")) //nolint:errcheck // 0 is unknown
	for rest := text; len(rest) > 0; {
		var line contract.LogLine
		n, err := nextLine(rest, &line)
		if err != nil {
			return Log{}, err
		}
		rest, log.Lines = rest[n:], append(log.Lines, line)
	}
	return log, nil
}

func nextLine(text []byte, to *contract.LogLine) (int, error) {
	n := len(text)
	for i, b := range text {
		if b == '\n' {
			n = i + 1
			break
		}
	}
	if err := json.Unmarshal(text[:n], to); err != nil {
		return 0, errors.New("the server did not answer with the lines of a log")
	}
	return n, nil
}

// A stream without output for streamIdle is reopened. So is a stream that ends before the run,
// after streamPause if it had no output.
const (
	streamIdle  = 90 * time.Second
	streamPause = time.Second
)

// FollowLog calls each with the new lines of the log, of the attempt and all later ones. It
// stops when the run ends or each returns an error, and returns that error. If the stream ends
// early, FollowLog reopens it at the same position. It sets *from to the position after the
// last line, so that the caller can continue there.
func (c *Client) FollowLog(ctx context.Context, taskID string, from *LogPosition, each func(contract.LogLine) error) error {
	for {
		before, ended := *from, false
		err := c.retry(ctx, func() error {
			err := c.streamLog(ctx, taskID, from, func(line contract.LogLine) error {
				ended = line.Ended
				return each(line)
			})
			if _, broken := errors.AsType[*sdk.ConnectionError](err); broken && ctx.Err() == nil && *from != before {
				return nil // the stream had output before it ended
			}
			return err
		})
		if err != nil || ended {
			return err
		}
		if *from == before {
			if err := c.sleep(ctx, streamPause); err != nil {
				return err
			}
		}
	}
}

// streamLog reads one stream.
func (c *Client) streamLog(ctx context.Context, taskID string, from *LogPosition, each func(contract.LogLine) error) error {
	query := from.query()
	query.Set("follow", "true")
	what := call{method: http.MethodGet, path: taskPath(taskID, "logs"), query: query, header: http.Header{"Accept": {typeLines}}}
	stopProbing := c.probing(ctx)
	defer stopProbing()
	resp, err := c.api.Open(ctx, what.request(), sdk.WithTimeout(streamIdle))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	c.contacted()
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the server sends an incomplete line again
		}
		if err != nil {
			return err
		}
		var line contract.LogLine
		if _, err := nextLine(text, &line); err != nil {
			return err
		}
		if err := each(line); err != nil {
			return err
		}
		from.Attempt, from.Offset = line.Attempt, line.Next
	}
}
