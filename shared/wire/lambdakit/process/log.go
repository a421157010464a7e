package process

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"

	"github.com/sortie-dev/sortie/shared/wire/lambdakit/metric"
)

// call is the event that the process serves at present.
type call struct {
	id    string // Lambda's request id
	first bool
	// counts are written at the end of the call.
	counts *metric.Counts
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// newLog returns a logger of JSON lines. The lines get the attributes of the call in the
// context.
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

// handler adds the call to each line and counts the logged faults.
type handler struct{ slog.Handler }

// Handle implements slog.Handler.
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

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

// secret matches tokens (JWT, Bearer) and the queries of URLs. A query may contain a token or a
// signature.
var secret = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]*|(?i:bearer)\s+\S+|(https?://[^\s"?]+)\?[^\s"]*`)

// redacted returns the text without secrets. Our own code logs none, but the errors of
// libraries may contain the URLs that they called.
func redacted(text string) string { return secret.ReplaceAllString(text, "$1[redacted]") }

// runtimeLog is the writer of the standard log, which Lambda's runtime uses. It drops the
// runtime's JSON lines about errors of the handler, because they are already logged.
type runtimeLog struct{ log *slog.Logger }

func (w runtimeLog) Write(line []byte) (int, error) {
	if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '{' {
		w.log.Error("log of the runtime", "text", string(text))
	}
	return len(line), nil
}
