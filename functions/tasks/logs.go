package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Headers of the response with a log.
const (
	headerAttempt = "X-Attempt"
	headerEnded   = "X-Log-Ended"
)

// The content types of a log.
const (
	typeText  = "text/plain; charset=utf-8"
	typeBytes = "application/octet-stream" // of a log that is no text in UTF-8
	typeLines = "application/x-ndjson"
	// typeFollowed is the type of a log with later output that is not known yet.
	typeFollowed = "text/plain"
)

// maxOffset is the largest integer that every JSON library reads exactly.
const maxOffset = 1<<53 - 1

// followMargin is the part of a request's time that is reserved for ending a followed log.
const followMargin = 2 * time.Second

// serveLog serves the log of an attempt, or follows it.
func serveLog(svc *logs.Archive, w http.ResponseWriter, r *http.Request) error {
	q, follow, err := logQuery(r)
	if err != nil {
		return err
	}
	if follow && r.Method != http.MethodHead {
		return followLogs(svc, q, w, r)
	}
	log, err := svc.Log(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), q)
	if err != nil {
		return fmt.Errorf("cannot read the log: %w", err)
	}
	describeLog(w, log.Attempt, log.Ended)
	kind, encode := typeText, textOf
	if wantsLines(r) {
		kind, encode = typeLines, linesOf
	}
	text := encode(log.Parts)
	if kind == typeText && !isText(text) {
		kind = typeBytes
	}
	return httpkit.WriteBytes(w, http.StatusOK, kind, text)
}

// isText reports whether a part of a log is text in UTF-8. The part may start and end within a
// character.
func isText(part []byte) bool {
	for i := 0; i < utf8.UTFMax-1 && len(part) > 0 && !utf8.RuneStart(part[0]); i++ {
		part = part[1:]
	}
	for i := len(part) - 1; i >= max(len(part)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(part[i]) {
			if !utf8.FullRune(part[i:]) {
				part = part[:i]
			}
			break
		}
	}
	return utf8.Valid(part)
}

// logQuery reads the query of a log.
func logQuery(r *http.Request) (q logs.Query, follow bool, err error) {
	if q.Attempt, err = httpkit.IntQuery(r, "attempt", 1, math.MaxInt32, 0); err != nil {
		return q, false, err
	}
	offset, err := httpkit.IntQuery(r, "offset", 0, maxOffset, 0)
	if err != nil {
		return q, false, err
	}
	q.Offset = int64(offset)
	query := r.URL.Query()
	if q.Stream = livelog.Stream(query.Get("stream")); query.Has("stream") && !slices.Contains(livelog.Streams(), q.Stream) {
		return q, false, fault.Invalid("stream", "unknown stream, want one of %v", livelog.Streams())
	}
	follow, err = httpkit.BoolQuery(r, "follow")
	return q, follow, err
}

// wantsLines reports whether the client accepts lines of JSON.
func wantsLines(r *http.Request) bool {
	for each := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, _, err := mime.ParseMediaType(each)
		if err == nil && kind == typeLines {
			return true
		}
	}
	return false
}

func describeLog(w http.ResponseWriter, attempt int, ended bool) {
	w.Header().Set(headerAttempt, strconv.Itoa(attempt))
	w.Header().Set(headerEnded, strconv.FormatBool(ended))
}

// followLogs streams the logs of a run until the run ends or the request has no time left. A
// response that cannot be streamed ends with the first output.
func followLogs(svc *logs.Archive, q logs.Query, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-followMargin))
		defer cancel()
	}
	kind, encode := typeFollowed, textOf
	if wantsLines(r) {
		kind, encode = typeLines, linesOf
	}
	last := contract.LogLine{}
	flush := http.NewResponseController(w).Flush
	var unflushed error // of the headers: the response cannot be streamed
	begin := func(attempt int, ended bool) {
		last.Attempt, last.Next = attempt, q.Offset
		describeLog(w, attempt, ended)
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		unflushed = flush()
	}
	each := func(parts []logs.Part) bool {
		last.Attempt, last.Next = parts[len(parts)-1].Attempt, parts[len(parts)-1].Next
		if _, err := w.Write(encode(parts)); err != nil {
			return false // the client has disconnected
		}
		return unflushed == nil && flush() == nil
	}
	finished, err := svc.Follow(ctx, httpkit.CallerOf(ctx), idOf(r), q, begin, each)
	if err != nil {
		return fmt.Errorf("cannot follow the log: %w", err)
	}
	if last.Ended = finished; finished && kind == typeLines {
		if text, err := json.Marshal(last); err == nil {
			_, _ = w.Write(append(text, '\n')) // the client has disconnected
		}
	}
	return nil
}

// textOf returns the concatenated text of parts.
func textOf(parts []logs.Part) []byte {
	var text bytes.Buffer
	for _, p := range parts {
		text.Write(p.Text())
	}
	return text.Bytes()
}

// linesOf returns parts as lines of JSON.
func linesOf(parts []logs.Part) []byte {
	var text bytes.Buffer
	for _, p := range parts {
		line := contract.LogLine{Attempt: p.Attempt, Stream: string(p.Stream), Data: p.Data, Cut: p.Cut, At: p.WrittenAt(), Next: p.Next}
		if one, err := json.Marshal(line); err == nil { // a struct of numbers and strings
			text.Write(append(one, '\n'))
		}
	}
	return text.Bytes()
}
