package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// ErrOutputChanged means that an output was replaced while it was read.
var ErrOutputChanged = errors.New("the output changed during the download")

const (
	// logSilence is how long a followed log may be without output before it connects again.
	logSilence = 2 * time.Minute
	mostLine   = 1 << 20
	waitTime   = 20 * time.Second
	leastPoll  = 250 * time.Millisecond
)

// IsTerminal reports whether a run in this state has ended.
func IsTerminal(state api.State) bool {
	return slices.Contains([]api.State{api.StateCompleted, api.StateFailed, api.StateCancelled, api.StateOrphaned}, state)
}

// Wait waits for the end of a run and returns it. The end may be a failure: see its State.
// Only ctx limits the wait.
func (s Runs) Wait(ctx context.Context, runID string, options ...Option) (*api.Task, error) {
	for {
		run, err := s.Get(ctx, runID, options...)
		if err != nil || IsTerminal(run.State) {
			return run, err
		}
		for begun := s.t.clock.Now(); ; begun = s.t.clock.Now() { // the server answers when something changes
			query := ExportsStatusQuery{Wait: int64(waitTime / time.Second)}
			status, err := Exports(s).Status(ctx, run.TaskID, query, append(slices.Clone(options), WithTimeout(2*waitTime))...)
			if err != nil {
				return nil, err
			}
			if IsTerminal(status.State) {
				break
			}
			if s.t.clock.Now().Sub(begun) < leastPoll {
				if err := clock.Sleep(ctx, s.t.clock, leastPoll); err != nil {
					return nil, context.Cause(ctx)
				}
			}
		}
	}
}

// LogQuery selects a part of the output of a worker. The zero value selects the latest attempt.
type LogQuery struct {
	Attempt int64
	// Stream is "stdout" or "stderr"; empty means both.
	Stream string
	// Offset is the Next of a line.
	Offset int64
}

func (q LogQuery) values() url.Values {
	v := url.Values{}
	setNumber(v, "attempt", q.Attempt)
	setText(v, "stream", q.Stream)
	setNumber(v, "offset", q.Offset)
	return v
}

// Logs calls GET /v1/tasks/{task_id}/logs: the output of a worker as text.
func (s Tasks) Logs(ctx context.Context, taskID string, query LogQuery, options ...Option) (string, error) {
	return sendText(ctx, s.t, call{method: http.MethodGet, path: pathOf("/v1/tasks/{task_id}/logs", taskID), query: query.values()}, options)
}

// FollowLogs yields the output of all attempts until the run ends. A break is resumed.
func (s Tasks) FollowLogs(ctx context.Context, taskID string, query LogQuery) iter.Seq2[*api.LogLine, error] {
	return func(yield func(*api.LogLine, error) bool) {
		var waits pauses
		for {
			ended, err := s.logLines(ctx, taskID, &query, &waits, yield)
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if ended {
				return
			}
			if err == nil || isBreak(err) {
				err = waits.sleep(ctx, s.t.clock, err)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func (s Tasks) logLines(ctx context.Context, taskID string, query *LogQuery, waits *pauses, yield func(*api.LogLine, error) bool) (ended bool, err error) {
	values := query.values()
	values.Set("follow", "true")
	what, err := s.t.prepare(call{method: http.MethodGet, path: pathOf("/v1/tasks/{task_id}/logs", taskID), query: values, accept: "application/x-ndjson"}, nil)
	if err != nil {
		return false, err
	}
	response, err := s.t.stream(ctx, what, logSilence)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, mostLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		waits.failures = 0
		if len(lines.Bytes()) == 0 {
			continue
		}
		line, err := decodeMessage[api.LogLine](lines.Bytes())
		if err != nil {
			return false, err
		}
		query.Offset = line.Next
		if line.Attempt != nil {
			query.Attempt = *line.Attempt
		}
		if !yield(line, nil) || line.Ended != nil && *line.Ended {
			return true, nil
		}
	}
	return false, lines.Err()
}

// wholeLines splits a body into lines. A line that a break cut off is dropped.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Content describes an output or the content of an artifact.
type Content struct {
	// Size is the number of bytes, or -1 if it is not known.
	Size      int64
	MediaType string
	FileName  string
	ETag      string
}

// Download is a content that is read. The caller closes it.
type Download struct {
	Content
	io.ReadCloser
}

func contentOf(response *http.Response) Content {
	_, parameters, _ := mime.ParseMediaType(response.Header.Get("Content-Disposition"))
	return Content{
		Size: response.ContentLength, MediaType: response.Header.Get("Content-Type"),
		FileName: parameters["filename"], ETag: response.Header.Get("ETag"),
	}
}

// Output calls GET /download/{task_id}: it opens the output of a task.
func (s Tasks) Output(ctx context.Context, taskID string, options ...Option) (*Download, error) {
	response, err := s.output(ctx, http.MethodGet, taskID, options) //nolint:bodyclose // the caller closes the download
	if err != nil {
		return nil, err
	}
	return &Download{contentOf(response), response.Body}, nil
}

// DescribeOutput calls HEAD /download/{task_id}: size, type and name of the output of a task.
func (s Tasks) DescribeOutput(ctx context.Context, taskID string, options ...Option) (*Content, error) {
	response, err := s.output(ctx, http.MethodHead, taskID, options)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	content := contentOf(response)
	return &content, nil
}

// Download copies the output of a task and returns its size. It resumes after a break, as
// often as Config.Retries without any progress.
func (s Tasks) Download(ctx context.Context, taskID string, to io.Writer) (int64, error) {
	var size int64
	etag := ""
	for failures := 0; ; failures++ {
		var options []Option
		if size > 0 {
			options = []Option{WithHeader("Range", fmt.Sprintf("bytes=%d-", size)), WithHeader("If-Range", etag)}
		}
		before := size
		response, err := s.output(ctx, http.MethodGet, taskID, options)
		if err == nil {
			if size > 0 && response.StatusCode != http.StatusPartialContent {
				_ = response.Body.Close()
				return size, ErrOutputChanged
			}
			etag = response.Header.Get("ETag")
			var n int64
			n, err = io.Copy(to, response.Body)
			size += n
			_ = response.Body.Close()
		}
		if size > before {
			failures = 0
		}
		if err == nil || failures >= s.t.retries || !isBreak(err) || size > 0 && etag == "" || ctx.Err() != nil {
			return size, err
		}
		if err := clock.Sleep(ctx, s.t.clock, delayBefore(failures, err)); err != nil {
			return size, context.Cause(ctx)
		}
	}
}

// output opens an output. It follows a redirect without the token.
func (s Tasks) output(ctx context.Context, method, taskID string, options []Option) (*http.Response, error) {
	what, err := s.t.prepare(call{method: method, path: pathOf("/download/{task_id}", taskID), accept: "*/*"}, options)
	if err != nil {
		return nil, err
	}
	what.header.Set("Accept-Encoding", "identity")
	response, err := s.t.stream(ctx, what, max(what.timeout, silence))
	if err != nil || response.StatusCode != http.StatusFound {
		return response, err
	}
	_ = response.Body.Close()
	location, err := response.Location()
	if err != nil || location.Scheme != "http" && location.Scheme != "https" {
		return nil, &ConnectionError{method + " " + what.path, errors.New("malformed Location")}
	}
	kept := http.Header{}
	for _, name := range []string{"Accept-Encoding", "Range", "If-Range", "If-Match", "If-None-Match"} {
		if value := what.header.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	return s.t.stream(ctx, call{method: method, presigned: location.String(), header: kept, answered: what.answered}, max(what.timeout, silence))
}
