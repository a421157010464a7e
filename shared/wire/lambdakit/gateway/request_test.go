package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// example returns the event of a GET in the form of API Gateway's documentation.
func example(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/request.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func request(t *testing.T, event string) *http.Request {
	t.Helper()
	var e events.APIGatewayProxyRequest
	if err := json.Unmarshal([]byte(event), &e); err != nil {
		t.Fatal(err)
	}
	r, err := gateway.Request(context.Background(), &e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequestMatchesTheEvent(t *testing.T) {
	t.Parallel()
	r := request(t, string(example(t)))
	type summary struct {
		Method, Path, Query, URI, Host, Remote, Proto string
		Length                                        int64
	}
	got := summary{r.Method, r.URL.Path, r.URL.RawQuery, r.RequestURI, r.Host, r.RemoteAddr, r.Proto, r.ContentLength}
	want := summary{
		"GET", "/status/export_mods_1", "q=a%2B&q=b%26c%3D%C3%BC+d&wait=5", "/status/export_mods_1?q=a%2B&q=b%26c%3D%C3%BC+d&wait=5",
		"q1w2e3r4t5.execute-api.eu-central-1.amazonaws.com", "203.0.113.7:0", "HTTP/1.1", 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantHeader := http.Header{
		"Accept": {"application/json"}, "Cloudfront-Viewer-Country": {"DE"}, "X-Forwarded-For": {"203.0.113.7, 198.51.100.2"},
		"X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"}, "If-None-Match": {`"a"`, `"b"`}, "X-Correlation-Id": {"two"},
	}
	if diff := cmp.Diff(wantHeader, r.Header); diff != "" {
		t.Error(diff)
	}
	if body, err := io.ReadAll(r.Body); err != nil || len(body) > 0 || r.Body != http.NoBody {
		t.Errorf("got body %q (%v), want none", body, err)
	}
}

func TestPathsKeepTheirSegments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ sent, path, escaped string }{
		{"/status/a%2Fb", "/status/a/b", "/status/a%2Fb"},
		{"/status/a b", "/status/a b", "/status/a%20b"},
		{"/status/100%", "/status/100%", "/status/100%25"},
		{"/status/%C3%BC", "/status/ü", "/status/%C3%BC"},
		{"/status/ü", "/status/ü", "/status/%C3%BC"},
		{"/a/../b", "/a/../b", "/a/../b"},
		{"/a?b", "/a?b", "/a%3Fb"},
	} {
		text, err := json.Marshal(events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: row.sent})
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, string(text))
		if r.URL.Path != row.path || r.URL.EscapedPath() != row.escaped {
			t.Errorf("%s: got %q, escaped %q; want %q, %q", row.sent, r.URL.Path, r.URL.EscapedPath(), row.path, row.escaped)
		}
	}
}

func TestBodiesAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, event, want string }{
		{"text", `{"httpMethod":"POST","path":"/x","body":"ü\"","headers":{"content-length":"99","Transfer-Encoding":"chunked"}}`, `ü"`},
		{"base64", `{"httpMethod":"POST","path":"/x","body":"AP8B","isBase64Encoded":true}`, "\x00\xff\x01"},
		{"none", `{"httpMethod":"POST","path":"/x","body":null,"isBase64Encoded":true}`, ""},
	} {
		r := request(t, row.event)
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != row.want || r.ContentLength != int64(len(row.want)) {
			t.Errorf("%s: got body %q of %d bytes (%v)", row.name, body, r.ContentLength, err)
		}
		if len(r.Header) > 0 {
			t.Errorf("%s: got header %v, want none", row.name, r.Header)
		}
	}
}

func TestSingleValuesAreUsedWithoutMultiValues(t *testing.T) {
	t.Parallel()
	r := request(t, `{"httpMethod":"GET","path":"/x","headers":{"x-a":"1","host":"h"},"queryStringParameters":{"q":"a b"}}`)
	if r.Header.Get("X-A") != "1" || r.Host != "h" || r.URL.RawQuery != "q=a+b" {
		t.Errorf("got %v %v %q", r.Header, r.Host, r.URL.RawQuery)
	}
}

func TestOtherEventsAreRefused(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{
		"a schedule":      `{"source":"aws.events","detail-type":"Scheduled Event","detail":{}}`,
		"an HTTP API":     `{"version":"2.0","rawPath":"/x","requestContext":{"http":{"method":"GET"}}}`,
		"a broken body":   `{"httpMethod":"POST","path":"/x","body":"?","isBase64Encoded":true}`,
		"a broken method": `{"httpMethod":"G T","path":"/x"}`,
		"no JSON":         `{`,
		"another type":    `{"httpMethod":["GET"],"path":"/x"}`,
		"no path":         `{"httpMethod":"GET","path":"x"}`,
	} {
		if answer, err := serve(t, http.NotFoundHandler()).Buffered(context.Background(), []byte(event)); err == nil {
			t.Errorf("%s: got answer %s, want an error", name, answer)
		}
		if _, err := serve(t, http.NotFoundHandler()).Streaming(context.Background(), []byte(event)); err == nil {
			t.Errorf("%s: got a stream, want an error", name)
		}
	}
}
