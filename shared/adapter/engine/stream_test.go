package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// events parses an event stream by the rules of the WHATWG, line by line, and returns the data
// of its events. It shares no code with the adapter.
func events(stream string) (found []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	var data []string
	for line, rest, whole := strings.Cut(stream, "\n"); whole; line, rest, whole = strings.Cut(rest, "\n") {
		field, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && len(data) > 0:
			found, data = append(found, strings.Join(data, "\n")), nil
		case field == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return found // an event without an empty line behind it is not complete
}

// plainly writes events in the plainest form.
func plainly(all []string) string {
	var b strings.Builder
	for _, data := range all {
		for line := range strings.SplitSeq(data, "\n") {
			fmt.Fprintf(&b, "data: %s\n", line)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// inParts sends a text as the answer's events, a number of bytes at a time.
func inParts(body string, size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for len(body) > 0 {
			n := min(size, len(body))
			_, _ = io.WriteString(w, body[:n])
			w.(http.Flusher).Flush() //nolint:forcetypeassert // of net/http
			body = body[n:]
		}
	}
}

// answerTo returns the result of a generation whose response is a stream.
func answerTo(t *testing.T, kind platform.EngineKind, handler http.HandlerFunc) string {
	t.Helper()
	text, end, err := generate(t.Context(), serve(t, engine.Config{Kind: kind}, handler))
	if err != nil {
		return fmt.Sprintf("%q and %s", text, fault.Of(err).Code)
	}
	return fmt.Sprintf("%q and %+v", text, end)
}

// TestEventStreamInParts sends streams byte by byte, so that each read ends within a line, a
// line's end, a byte order mark or a character.
func TestEventStreamInParts(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"line feeds":                "data: " + piece + "\n\ndata: " + last + "\n\n",
		"carriage returns and both": "data: " + piece + "\r\n\r\ndata: " + last + "\r\r",
		"byte order mark":           "\ufeffdata: " + piece + "\n\ndata: " + last + "\n\n",
		"comment within":            "data: " + piece + "\n: x\n\ndata: " + last + "\n\n",
		"several lines":             "data: {\"choices\":\r\ndata: [{\"text\":\"a\",\"finish_reason\":null}]}\r\n\r\ndata: " + last + "\n\n",
	} {
		for size := 1; size < 4; size++ {
			if got, want := answerTo(t, platform.EngineVLLM, inParts(body, size)), answerTo(t, platform.EngineVLLM, streamed(plainly(events(body)))); got != want || !strings.HasPrefix(got, `"ab"`) {
				t.Errorf("%s, %d bytes at a time: got %s, want %s", name, size, got, want)
			}
		}
	}
	wide := "data: " + `{"choices":[{"text":"é€😀","finish_reason":"stop"}]}` + "\n\n"
	if got := answerTo(t, platform.EngineVLLM, inParts(wide, 1)); !strings.HasPrefix(got, `"é€😀"`) {
		t.Errorf("got %s, want the characters whole", got)
	}
	// A byte order mark is removed only at the start of a stream.
	if got := answerTo(t, platform.EngineVLLM, streamed("data: "+piece+"\n\n\ufeffdata: {\n\ndata: "+last+"\n\n")); !strings.HasPrefix(got, `"ab"`) {
		t.Errorf("got %s, want the line with another field name ignored", got)
	}
}

// FuzzEventStream reads any stream, split anywhere. The answer equals that to the same events
// in their plainest form.
func FuzzEventStream(f *testing.F) {
	for _, seed := range []string{
		"data: " + piece + "\n\ndata: " + last + "\n\n", "data: " + piece + "\r\n\r\ndata:" + last + "\r\r", "\ufeffdata: " + last + "\n\n", ":\n\ndata\n\ndata: " + last + "\n\n",
		"id\ndata: " + piece + "\nretry: 1\n\ndata: " + last + "\n\n", "data: " + piece + "\n\ndata: " + last, "data: {\"choices\":\ndata: [{\"text\":\"a\",\"finish_reason\":\"length\"}]}\n\n",
		"data: {\"error\":{\"message\":\"x\",\"code\":500}}\n\ndata: [DONE]\n\n", "data: " + piece + "\n\n\ufeffdata: {\n\ndata: " + last + "\n\n",
	} {
		for _, size := range []int{1, 2, 7, 1000} {
			f.Add(seed, size)
		}
	}
	f.Fuzz(func(t *testing.T, body string, size int) {
		if !utf8.ValidString(body) || strings.Contains(body, "\x00") || size < 1 || len(body) > 4096 || len(body)/size > 256 {
			return // a stream is UTF-8; many parts are slow
		}
		got, want := answerTo(t, platform.EngineVLLM, inParts(body, size)), answerTo(t, platform.EngineVLLM, streamed(plainly(events(body))))
		if got != want {
			t.Errorf("stream %q in parts of %d bytes: got %s, want %s", body, size, got, want)
		}
	})
}
