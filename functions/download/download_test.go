package download_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const content = "<mods>0123456789</mods>"

func setup(t *testing.T, change ...func(*apitest.Settings)) (stage *apitest.Stage, task string) {
	t.Helper()
	stage = apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) }, change...)
	return stage, stage.Success(t, "collection.xml", "application/xml", content)
}

func problem(t *testing.T, answer apitest.Answer) contract.Problem {
	t.Helper()
	var p contract.Problem
	if err := json.Unmarshal([]byte(answer.Body), &p); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return p
}

// downloadRecorded reports whether the download was recorded. The record follows the last byte.
// So downloadRecorded closes the server, which waits for the handlers.
func downloadRecorded(t *testing.T, stage *apitest.Stage, task string) bool {
	t.Helper()
	stage.Server.Close()
	return stage.Run(t, task).Output.ExpiresAt.Equal(apitest.Began.Add(time.Hour))
}

func TestOutputIsStreamed(t *testing.T) {
	t.Parallel()
	stage, task := setup(t)
	answer := stage.Call(t, http.MethodGet, "/download/"+task, "")
	if answer.Status != http.StatusOK || answer.Body != content {
		t.Fatalf("got %d %q, want 200 %q", answer.Status, answer.Body, content)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/xml", "Content-Disposition": `attachment; filename="collection.xml"`,
		"Content-Length": "23", "Accept-Ranges": "bytes", "ETag": stage.Run(t, task).Output.ETag,
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if !downloadRecorded(t, stage, task) {
		t.Error("got no record of the download, want one")
	}
}

// TestUploadersTypeIsIgnored uploads with types that a browser would execute, and
// reads the content type of the task's format.
func TestUploadersTypeIsIgnored(t *testing.T) {
	t.Parallel()
	for _, uploaded := range []string{
		"text/html", "text/html; charset=utf-8", "image/svg+xml", "application/xhtml+xml", "application/octet-stream", "", "no type",
	} {
		for name, over := range map[string]int64{"streamed": 0, "redirected": 10} {
			t.Run(uploaded+" "+name, func(t *testing.T) {
				t.Parallel()
				stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) },
					func(s *apitest.Settings) { s.Service.RedirectOver = over })
				task := stage.Success(t, "<é>.xml", uploaded, content)
				check := func(what string, header http.Header) {
					t.Helper()
					const disposition = `attachment; filename="___.xml"; filename*=UTF-8''_%C3%A9_.xml`
					if header.Get("Content-Type") != "application/xml" || header.Get("Content-Disposition") != disposition {
						t.Errorf("%s: got %q and %q, want application/xml and %q",
							what, header.Get("Content-Type"), header.Get("Content-Disposition"), disposition)
					}
				}
				head := stage.Call(t, http.MethodHead, "/download/"+task, "")
				check("HEAD", head.Header)
				answer := stage.Call(t, http.MethodGet, "/download/"+task, "")
				if got := answer.Header.Get("X-Content-Type-Options"); got != "nosniff" {
					t.Errorf("got X-Content-Type-Options %q, want nosniff", got)
				}
				if over == 0 {
					check("GET", answer.Header)
					return
				}
				bucket := http.Client{Transport: stage.Objects}
				response, err := bucket.Get(answer.Header.Get("Location"))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				check("the bucket", response.Header)
			})
		}
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	stage, task := setup(t)
	answer := stage.Call(t, http.MethodHead, "/download/"+task, "", "Range", "bytes=0-3")
	if answer.Status != http.StatusOK || answer.Body != "" || answer.Header.Get("Content-Length") != "23" {
		t.Errorf("got %d %q of %s bytes, want 200 without a body and 23 bytes", answer.Status, answer.Body, answer.Header.Get("Content-Length"))
	}
	if downloadRecorded(t, stage, task) {
		t.Error("got HEAD recorded as a download, want it not recorded")
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, header     string
		status           int
		body, part       string
		downloadRecorded bool
	}{
		{"the beginning", "bytes=0-5", 206, "<mods>", "bytes 0-5/23", false},
		{"the middle", "bytes=6-15", 206, "0123456789", "bytes 6-15/23", false},
		{"to the end", "bytes=16-", 206, "</mods>", "bytes 16-22/23", true},
		{"the last bytes", "bytes=-7", 206, "</mods>", "bytes 16-22/23", true},
		{"beyond the end", "bytes=16-999999999999999999999", 206, "</mods>", "bytes 16-22/23", true},
		{"longer than the output", "bytes=-99", 206, content, "bytes 0-22/23", true},
		{"one byte", "bytes=22-22", 206, ">", "bytes 22-22/23", true},
		{"after the end", "bytes=23-", 416, "", "bytes */23", false},
		{"no bytes", "bytes=-0", 416, "", "bytes */23", false},
		{"several", "bytes=0-1,3-4", 200, content, "", true},
		{"backwards", "bytes=5-2", 200, content, "", true},
		{"another unit", "lines=1-2", 200, content, "", true},
		{"nonsense", "bytes=a-b", 200, content, "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage, task := setup(t)
			answer := stage.Call(t, http.MethodGet, "/download/"+task, "", "Range", row.header)
			if answer.Status != row.status || answer.Header.Get("Content-Range") != row.part {
				t.Fatalf("got %d with %q, want %d with %q", answer.Status, answer.Header.Get("Content-Range"), row.status, row.part)
			}
			if row.status != 416 && answer.Body != row.body {
				t.Errorf("got body %q, want %q", answer.Body, row.body)
			}
			if downloadRecorded(t, stage, task) != row.downloadRecorded {
				t.Errorf("got download recorded: %v, want %v", !row.downloadRecorded, row.downloadRecorded)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	stage, task := setup(t)
	etag := stage.Run(t, task).Output.ETag
	for _, row := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"If-None-Match, match", []string{"If-None-Match", etag}, 304},
		{"If-None-Match, weak match", []string{"If-None-Match", `"x", W/` + etag}, 304},
		{"If-None-Match, any", []string{"If-None-Match", "*"}, 304},
		{"If-None-Match, mismatch", []string{"If-None-Match", `"x"`}, 200},
		{"If-Match, match", []string{"If-Match", etag}, 200},
		{"If-Match, any", []string{"If-Match", "*"}, 200},
		{"If-Match, mismatch", []string{"If-Match", `"x"`}, 412},
		{"If-Match, weak", []string{"If-Match", "W/" + etag}, 412},
		{"If-Match precedes If-None-Match", []string{"If-Match", `"x"`, "If-None-Match", etag}, 412},
		{"If-Range, match", []string{"Range", "bytes=6-", "If-Range", etag}, 206},
		{"If-Range, mismatch", []string{"Range", "bytes=6-", "If-Range", `"x"`}, 200},
		{"If-Range, date", []string{"Range", "bytes=6-", "If-Range", "Fri, 02 Jan 2026 03:04:05 GMT"}, 200},
		{"If-Range, weak", []string{"Range", "bytes=6-", "If-Range", "W/" + etag}, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			answer := stage.Call(t, http.MethodGet, "/download/"+task, "", row.headers...)
			if answer.Status != row.status {
				t.Errorf("got %d, want %d", answer.Status, row.status)
			}
			if row.status == 200 && answer.Body != content {
				t.Errorf("got body %q, want %q", answer.Body, content)
			}
		})
	}
}

func TestMissingOutput(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) })
	pending := stage.Accept(t)
	failed := stage.Failure(t, "no manifest")
	expired := stage.Success(t, "a.xml", "", content)
	stage.Clock.Advance(25 * time.Hour)
	lost := stage.Success(t, "a.xml", "", content)
	stage.Objects.Clear()
	for _, row := range []struct {
		name, task string
		status     int
		says       string
	}{
		{"running", pending, 400, "Export not ready or failed"},
		{"failed", failed, 400, "Export not ready or failed"},
		{"expired", expired, 410, "expired"},
		{"object missing", lost, 404, "File not found in R2"},
		{"unknown", "export_mods_1_00000000", 404, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			answer := stage.Call(t, http.MethodGet, "/download/"+row.task, "")
			if p := problem(t, answer); answer.Status != row.status || !strings.Contains(p.Detail, row.says) {
				t.Errorf("got %d %q, want %d %q", answer.Status, p.Detail, row.status, row.says)
			}
			if answer.Header.Get("ETag") != "" || answer.Header.Get("Content-Disposition") != "" {
				t.Errorf("got headers of an output in the problem: %v, want them absent", answer.Header)
			}
		})
	}
}

func TestDeletedOutputIsGone(t *testing.T) {
	t.Parallel()
	stage, task := setup(t)
	for range 2 {
		if answer := stage.Call(t, http.MethodDelete, "/download/"+task, ""); answer.Status != http.StatusNoContent || answer.Body != "" {
			t.Fatalf("got %d %s, want 204 without a body", answer.Status, answer.Body)
		}
	}
	answer := stage.Call(t, http.MethodGet, "/download/"+task, "")
	if p := problem(t, answer); answer.Status != http.StatusGone || p.Code != "OUTPUT_DELETED" || !strings.Contains(p.Detail, "deleted on request") {
		t.Errorf("got %d %+v for a deleted output, want 410 OUTPUT_DELETED", answer.Status, p)
	}
	if n := stage.Objects.Count(port.Accepted); n != 0 {
		t.Errorf("got %d objects, want none", n)
	}
}

func TestLargeOutputIsRedirected(t *testing.T) {
	t.Parallel()
	stage, task := setup(t, func(s *apitest.Settings) { s.Service.RedirectOver = 10 })
	answer := stage.Call(t, http.MethodGet, "/download/"+task, "")
	location := answer.Header.Get("Location")
	if answer.Status != http.StatusFound || !strings.HasPrefix(location, "https://bucket.example/") || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d to %q, %v, want 302 to the bucket with no-store", answer.Status, location, answer.Header)
	}
	if head := stage.Call(t, http.MethodHead, "/download/"+task, ""); head.Status != http.StatusOK || head.Header.Get("Content-Length") != "23" {
		t.Errorf("HEAD: got %d, want 200 and 23 bytes", head.Status)
	}
	if downloadRecorded(t, stage, task) {
		t.Error("got a redirect recorded as a download, want it not recorded")
	}
	if strings.Contains(stage.Logs(), "X-Amz-Signature") {
		t.Error("got a presigned URL in the log, want it masked")
	}
}

func TestFailedReadBreaksTheConnection(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{0, 10} {
		stage, task := setup(t)
		stage.Objects.BreakAfter(after)
		response, err := stage.Server.Client().Get(stage.URL + "/download/" + task)
		if err == nil {
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if err == nil {
			t.Errorf("got a complete response of %d bytes, want a broken one", after)
		}
		if downloadRecorded(t, stage, task) {
			t.Error("got a partial download recorded, want it not recorded")
		}
	}
}

func TestEmptyOutput(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) })
	task := stage.Success(t, "a.xml", "application/xml", "")
	answer := stage.Call(t, http.MethodGet, "/download/"+task, "")
	if answer.Status != http.StatusOK || answer.Body != "" || answer.Header.Get("Content-Length") != "0" {
		t.Errorf("got %d of %s bytes, want 200 and 0 bytes", answer.Status, answer.Header.Get("Content-Length"))
	}
	if answer := stage.Call(t, http.MethodGet, "/download/"+task, "", "Range", "bytes=0-"); answer.Status != 416 {
		t.Errorf("got %d for a range of an empty output, want 416", answer.Status)
	}
}

func TestAbortedDownloadIsNotRecorded(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return download.Routes(s.Downloads) })
	// more than the socket buffers hold
	task := stage.Success(t, "a.xml", "application/xml", strings.Repeat("x", 64<<20))
	response, err := stage.Server.Client().Get(stage.URL + "/download/" + task)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if downloadRecorded(t, stage, task) {
		t.Error("got an aborted download recorded, want it not recorded")
	}
}

// TestRetainedOutputIsNoDownload reads the whole output, and its last byte.
func TestRetainedOutputIsNoDownload(t *testing.T) {
	t.Parallel()
	stage, task := setup(t)
	for _, part := range []string{"", "bytes=0-22", "bytes=-1"} {
		answer := stage.Call(t, http.MethodGet, "/download/"+task+"?retain=true", "", "Range", part)
		if answer.Status >= http.StatusMultipleChoices || !strings.HasSuffix(content, answer.Body) {
			t.Errorf("%q: got %d %q, want a part with the last byte", part, answer.Status, answer.Body)
		}
	}
	if answer := stage.Call(t, http.MethodGet, "/download/"+task+"?retain=1", ""); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d for a malformed parameter, want 400", answer.Status)
	}
	if downloadRecorded(t, stage, task) {
		t.Error("got a record of a download, want none")
	}
}
