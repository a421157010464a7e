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

// FuzzEvent checks that every payload gets a response or an error, and the same one buffered
// and streamed.
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
			t.Fatalf("got errors %v buffered, %v streamed", err, streamErr)
		}
		if err != nil {
			return
		}
		var a events.APIGatewayProxyResponse
		if err := json.Unmarshal(whole, &a); err != nil {
			t.Fatalf("malformed event: %v", err)
		}
		_, body, err := parts(stream)
		if err != nil || stream.Close() != nil || stream.StatusCode != a.StatusCode || a.StatusCode != http.StatusOK || body != bodyOf(t, a) {
			t.Fatalf("got streamed %d %q (%v), buffered %d %q; log %s", stream.StatusCode, body, err, a.StatusCode, a.Body, &s.logs)
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

// FuzzAnswer checks that an event has the body and type that the handler wrote.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "application/json", "", 200)
	f.Add([]byte("\xff\x00"), "text/plain; charset=latin1", "gzip", 404)
	f.Add([]byte("\u2028<&>\b"), "", "", 200)
	f.Fuzz(func(t *testing.T, body []byte, kind, encoding string, status int) {
		if status < 200 || status > 599 || status == 204 || status == 304 || !utf8.ValidString(kind) {
			return // no body, or not a valid header
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
			t.Errorf("%d %q: got event %s", status, body, text)
		}
		if got := http.Header(a.MultiValueHeaders).Get("Content-Type"); got != kind {
			t.Errorf("got type %q, want %q", got, kind)
		}
	})
}
