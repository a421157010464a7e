package download_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// stream requests a download as API Gateway does from a streaming function.
func stream(t *testing.T, stage *apitest.Stage, method, task string, headers ...string) *events.APIGatewayProxyStreamingResponse {
	t.Helper()
	header := map[string]string{"Host": "127.0.0.1"}
	for i := 0; i < len(headers); i += 2 {
		header[headers[i]] = headers[i+1]
	}
	event, err := json.Marshal(events.APIGatewayProxyRequest{HTTPMethod: method, Path: "/download/" + task, Headers: header})
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.Gateway{Handler: stage.Server.Config.Handler, Log: slog.New(slog.DiscardHandler)}
	response, err := g.Streaming(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestLambdaStreamsLikeAServer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, method     string
		headers          []string
		downloadRecorded bool
	}{
		{"whole output", "GET", nil, true},
		{"HEAD", "HEAD", nil, false},
		{"range", "GET", []string{"Range", "bytes=3-7"}, false},
		{"last range", "GET", []string{"Range", "bytes=-5"}, true},
		{"empty range", "GET", []string{"Range", "bytes=99-"}, false},
		{"If-None-Match, any", "GET", []string{"If-None-Match", "*"}, false},
		{"If-Match, mismatch", "GET", []string{"If-Match", `"other"`}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage, task := setup(t)
			response := stream(t, stage, row.method, task, row.headers...)
			body, err := io.ReadAll(response.Body)
			if err != nil || response.Close() != nil {
				t.Fatal(err)
			}
			if early := stage.Run(t, task).Output.ExpiresAt.Equal(apitest.Began.Add(time.Hour)); early != row.downloadRecorded {
				t.Errorf("got download recorded: %v, want %v", early, row.downloadRecorded)
			}
			want := stage.Call(t, row.method, "/download/"+task, "", row.headers...)
			got := http.Header(response.MultiValueHeaders)
			for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Content-Disposition", "ETag", "Accept-Ranges", "Cache-Control"} {
				if name == "Content-Length" && strings.HasPrefix(want.Header.Get("Content-Type"), "application/problem") {
					continue // the correlation ids differ
				}
				if got.Get(name) != want.Header.Get(name) {
					t.Errorf("%s: got %q, want %q as from a server", name, got.Get(name), want.Header.Get(name))
				}
			}
			if response.StatusCode != want.Status || want.Status < 400 && string(body) != want.Body {
				t.Errorf("got %d %q, want %d %q as from a server", response.StatusCode, body, want.Status, want.Body)
			}
		})
	}
}

func TestLambdaStreamsLargeOutput(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) })
	const size = 8 << 20
	task := stage.Success(t, "a.xml", "application/xml", strings.Repeat("x", size))
	response := stream(t, stage, "GET", task)
	if n := http.Header(response.MultiValueHeaders).Get("Content-Length"); n != strconv.Itoa(size) {
		t.Errorf("got Content-Length %s, want %d", n, size)
	}
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil || n != size || response.Close() != nil {
		t.Errorf("got %d bytes, %v, want %d", n, err, size)
	}
}

// TestLambdaStreamBreaksIfTheObjectStoreFails checks that the stream does not
// look complete.
func TestLambdaStreamBreaksIfTheObjectStoreFails(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{0, 10} {
		stage, task := setup(t)
		stage.Objects.BreakAfter(after)
		response := stream(t, stage, "GET", task)
		body, err := io.ReadAll(response.Body)
		if err == nil || len(body) > int(after) {
			t.Errorf("got a complete stream of %d bytes, want a broken one: %q", after, body)
		}
		if err := response.Close(); err != nil {
			t.Error(err)
		}
		if downloadRecorded(t, stage, task) {
			t.Error("got a partial download recorded, want it not recorded")
		}
	}
}

func TestAbortedLambdaStreamIsNotRecorded(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) })
	task := stage.Success(t, "a.xml", "application/xml", strings.Repeat("x", 1<<20))
	response := stream(t, stage, "GET", task)
	if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := response.Close(); err != nil {
		t.Error(err)
	}
	if downloadRecorded(t, stage, task) {
		t.Error("got an aborted download recorded, want it not recorded")
	}
}
