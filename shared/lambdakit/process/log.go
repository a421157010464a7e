package process

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"

	"github.com/sortie-dev/sortie/shared/lambdakit/metric"
)

// call is one event that the process serves.
type call struct {
	id    string // Lambda's
	first bool
	// counts are written when the call has ended.
	counts *metric.Counts
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// newLog writes JSON lines. What a line carries from its context is the call's.
func newLog(to io.Writer, function, version string) *slog.Logger {
	lines := slog.NewJSONHandler(to, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString:
			return slog.String(a.Key, redacted(a.Value.String()))
		case slog.KindAny:
			if err, ok := a.Value.Any().(error); ok {
				return slog.String(a.Key, redacted(err.Error()))
			}
		}
		return a
	}})
	return slog.New(handler{lines}).With("function", function, "version", version)
}

// handler adds the call to each line, and counts the faults that are told.
type handler struct{ slog.Handler }

// Handle writes one line.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	if c := callOf(ctx); c != nil {
		line.Attrs(func(a slog.Attr) bool {
			if a.Key == "fault" {
				c.counts.Fault(a.Value.String())
			}
			return true
		})
		line.AddAttrs(slog.String("request_id", c.id))
		if c.first {
			line.AddAttrs(slog.Bool("cold_start", true))
		}
	}
	return h.Handler.Handle(ctx, line) //nolint:wrapcheck // it is the same call
}

// WithAttrs is for slog.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup is for slog.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

// secret matches what no line may have: tokens (JWT, Bearer) and the queries of
// URLs, in which tokens and signatures travel.
var secret = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]*|(?i:bearer)\s+\S+|(https?://[^\s"?]+)\?[^\s"]*`)

// redacted is the text without secrets. Whoever logs keeps them out; this is for
// errors of libraries, which tell the URLs that they called.
func redacted(text string) string { return secret.ReplaceAllString(text, "$1[redacted]") }

// runtimeLog is what Lambda's runtime logs with: the standard log. It tells each
// error of a handler in full, as JSON; those are logged here already.
type runtimeLog struct{ log *slog.Logger }

func (w runtimeLog) Write(line []byte) (int, error) {
	if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '{' {
		w.log.Error("the runtime says", "text", string(text))
	}
	return len(line), nil
}
