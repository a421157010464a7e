package display

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// logWidth is the maximum width of a log line, in columns.
const logWidth = 100

// LogHandler writes log records for people, one line of at most 100 columns
// each: time, level, message, run, attempt, the fault and message of an event,
// and other attributes as far as they fit. It is safe for concurrent use if the
// writer is.
type LogHandler struct {
	out   io.Writer
	level slog.Level
	attrs []slog.Attr
}

// NewLogHandler returns a handler that writes records of at least this level.
func NewLogHandler(out io.Writer, level slog.Level) *LogHandler {
	return &LogHandler{out: out, level: level}
}

// Enabled reports whether records of the level are written.
func (h *LogHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs returns a handler that adds the attributes to each record.
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = slices.Concat(h.attrs, attrs)
	return &with
}

// WithGroup returns the handler itself: lines do not show groups.
func (h *LogHandler) WithGroup(string) slog.Handler { return h }

// Handle writes a record.
func (h *LogHandler) Handle(_ context.Context, r slog.Record) error {
	var task, run, attempt, failure, fault, message string
	var rest []string
	add := func(a slog.Attr) bool {
		value := a.Value.Resolve().String()
		switch a.Key {
		case "task_id":
			task = value
		case "run_id":
			run = value
		case "attempt":
			attempt = value
		case "error":
			failure = value
		case "fault":
			fault = value
		case "message":
			message = value
		case "correlation_id", "seq", "from", "state": // "sortie events" shows them
		default:
			if value != "" {
				rest = append(rest, a.Key+"="+value)
			}
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	parts := []string{fmt.Sprintf("%s %-5s %s", r.Time.Local().Format("15:04:05"), r.Level, r.Message)}
	if failure != "" {
		parts[0] += ": " + failure
	}
	if task == "" {
		task = run
	}
	if task != "" && attempt != "" && attempt != "0" {
		task += " #" + attempt
	}
	if task != "" {
		parts = append(parts, task)
	}
	if fault != "" && message != "" {
		fault += ": "
	}
	if fault += message; fault != "" {
		parts = append(parts, fault)
	}
	line := runewidth.Truncate(Clean(strings.Join(append(parts, rest...), "  ")), logWidth, "…")
	if _, err := io.WriteString(h.out, line+"\n"); err != nil {
		return fmt.Errorf("cannot write the log: %w", err)
	}
	return nil
}
