package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// FuzzEvent: whatever arrives is answered or refused, and both ways of answering
// say the same.
func FuzzEvent(f *testing.F) {
	f.Add(example(f))
	f.Add([]byte(`{"httpMethod":"POST","path":"/a%2Fb","body":"AP8=","isBase64Encoded":true,"headers":{"HOST":"h","x y":"z"}}`))
	f.Add([]byte(`{"httpMethod":"GET","path":"//x/%zz","multiValueQueryStringParameters":{"":["a","b"],"é":[]},"requestContext":{"protocol":"HTTP/2","identity":{"sourceIp":"::1"}}}`))
	f.Add([]byte(`[]`))
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		if r.URL.EscapedPath() == "" || r.URL.Path[0] != '/' || r.Host != "" && r.Header.Get("Host") != "" {
			panic("no request")
		}
		_, _ = io.Copy(w, r.Body)
	})
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := serve(t, echo)
		whole, err := s.Buffered(context.Background(), payload)
		stream, streamErr := s.Streaming(context.Background(), payload)
		if (err == nil) != (streamErr == nil) {
			t.Fatalf("buffered %v, streamed %v", err, streamErr)
		}
		if err != nil {
			return
		}
		var a events.APIGatewayProxyResponse
		if err := json.Unmarshal(whole, &a); err != nil {
			t.Fatalf("the answer is no event: %v", err)
		}
		_, body, err := parts(stream)
		if err != nil || stream.Close() != nil || stream.StatusCode != a.StatusCode || a.StatusCode != http.StatusOK || body != bodyOf(t, a) {
			t.Fatalf("streamed %d %q (%v), buffered %d %q; log %s", stream.StatusCode, body, err, a.StatusCode, a.Body, &s.logs)
		}
	})
}

func bodyOf(t *testing.T, a events.APIGatewayProxyResponse) string {
	t.Helper()
	if !a.IsBase64Encoded {
		return a.Body
	}
	raw, err := base64.StdEncoding.DecodeString(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// FuzzAnswer: every body and header that a handler can write survives the event.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "application/json", "", 200)
	f.Add([]byte("\xff\x00"), "text/plain; charset=latin1", "gzip", 404)
	f.Add([]byte("\u2028<&>\b"), "", "", 200)
	f.Fuzz(func(t *testing.T, body []byte, kind, encoding string, status int) {
		if status < 200 || status > 599 || status == 204 || status == 304 || !utf8.ValidString(kind) {
			return // no answer with a body, or no header that HTTP knows
		}
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Encoding", encoding)
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}))
		text, err := s.Buffered(context.Background(), event("GET"))
		if err != nil {
			t.Fatal(err)
		}
		var a events.APIGatewayProxyResponse
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		if a.StatusCode != status || bodyOf(t, a) != string(body) {
			t.Errorf("%d %q became %s", status, body, text)
		}
		if got := http.Header(a.MultiValueHeaders).Get("Content-Type"); got != kind {
			t.Errorf("the type %q became %q", kind, got)
		}
	})
}
