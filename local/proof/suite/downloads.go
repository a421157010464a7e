package suite

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func downloads() []Test {
	return []Test{
		{Name: "download supports range and conditional requests", Requires: []Capability{ScriptedWorkers}, Run: wholeAndParts},
		{Name: "output up to 8 MiB is streamed", Requires: []Capability{ScriptedWorkers}, Run: streamed},
		{Name: "larger output is redirected to the bucket", Requires: []Capability{ScriptedWorkers}, Run: redirected},
		{Name: "deleted output is 410", Requires: []Capability{ScriptedWorkers}, Run: deleted},
		{Name: "download of a running task is refused", Requires: []Capability{ScriptedWorkers}, Run: downloadOfRunning},
	}
}

// exportPattern runs a task with the output stacktest.Pattern(size) and waits for its end.
func (c *Case) exportPattern(size int) (path string, status contract.Status) {
	c.T.Helper()
	status = c.End(c.StartScripted("one", fmt.Sprintf("output:%d", size)))
	if status.Status != contract.StatusSuccess || *status.OutputFileSize != int64(size) {
		c.T.Fatalf("got %+v, want success with the pattern", status)
	}
	return "/download/" + status.TaskID, status
}

func wholeAndParts(c *Case) {
	const size = 300_000
	path, before := c.exportPattern(size)
	content := stacktest.Pattern(size)
	head := c.Call(http.MethodHead, path, "")
	tag := head.Header.Get("Etag")
	if head.Status != http.StatusOK || head.Header.Get("Content-Length") != strconv.Itoa(size) || len(head.Body) > 0 || tag == "" {
		c.T.Errorf("HEAD: got %d %v, want 200 with the length and an ETag", head.Status, head.Header)
	}
	for _, row := range []struct {
		name    string
		headers []string
		status  int
		body    []byte
	}{
		{"middle", []string{"Range", "bytes=5-14"}, http.StatusPartialContent, content[5:15]},
		{"suffix range", []string{"Range", "bytes=-20"}, http.StatusPartialContent, content[size-20:]},
		{"open range", []string{"Range", "bytes=299990-"}, http.StatusPartialContent, content[299_990:]},
		{"range after the end", []string{"Range", "bytes=300000-"}, http.StatusRequestedRangeNotSatisfiable, nil},
		{"If-Range matches", []string{"Range", "bytes=299000-", "If-Range", tag}, http.StatusPartialContent, content[299_000:]},
		{"If-Range differs", []string{"Range", "bytes=299000-", "If-Range", `"x"`}, http.StatusOK, content},
		{"If-None-Match matches", []string{"If-None-Match", tag}, http.StatusNotModified, []byte{}},
		{"If-None-Match differs", []string{"If-None-Match", `"x"`}, http.StatusOK, content},
		{"If-Match matches", []string{"If-Match", tag}, http.StatusOK, content},
		{"If-Match differs", []string{"If-Match", `"x"`}, http.StatusPreconditionFailed, nil},
		{"no header", nil, http.StatusOK, content},
	} {
		answer := c.Call(http.MethodGet, path, "", row.headers...)
		if row.status == http.StatusOK || row.status == http.StatusPartialContent {
			c.checkFile(answer.Header)
		}
		if answer.Status != row.status || row.body != nil && !bytes.Equal(answer.Body, row.body) {
			c.T.Errorf("%s: got %d with %d bytes, want %d with %d", row.name, answer.Status, len(answer.Body), row.status, len(row.body))
		}
	}
	after := c.End(before.TaskID)
	if after.OutputExpiresAt.After(before.OutputExpiresAt) {
		c.T.Errorf("got output expiry %s after the download, want at most %s", after.OutputExpiresAt, before.OutputExpiresAt)
	}
}

// checkFile checks that an output has the content type of its format, regardless of the type of
// the upload.
func (c *Case) checkFile(header http.Header) {
	c.T.Helper()
	if header.Get("Content-Type") != "application/xml" || !strings.HasPrefix(header.Get("Content-Disposition"), `attachment; filename="`) {
		c.T.Errorf("got an output with headers %v, want an attachment of type application/xml", header)
	}
}

// maxStreamed is the largest output that is served without a redirect.
const maxStreamed = 8 << 20

func streamed(c *Case) {
	path, _ := c.exportPattern(maxStreamed)
	answer := c.Call(http.MethodGet, path, "")
	if answer.Status != http.StatusOK || !bytes.Equal(answer.Body, stacktest.Pattern(maxStreamed)) {
		c.T.Errorf("GET: got %d with %d bytes, want the whole output", answer.Status, len(answer.Body))
	}
}

func redirected(c *Case) {
	const size = maxStreamed + 1
	path, _ := c.exportPattern(size)
	answer := c.Call(http.MethodGet, path, "")
	place := answer.Header.Get("Location")
	if answer.Status != http.StatusFound || place == "" {
		c.T.Fatalf("GET: got %d %v, want 302 with a Location", answer.Status, answer.Header)
	}
	for span, want := range map[string][]byte{"": stacktest.Pattern(size), "bytes=100-199": stacktest.Pattern(size)[100:200]} {
		request, err := http.NewRequestWithContext(c.T.Context(), http.MethodGet, place, nil)
		if err != nil {
			c.T.Fatal("malformed Location of the redirect")
		}
		if span != "" {
			request.Header.Set("Range", span)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			c.T.Fatal("no response from the bucket")
		}
		c.checkFile(answer.Header)
		body, err := io.ReadAll(answer.Body)
		if closed := answer.Body.Close(); err != nil || closed != nil || !bytes.Equal(body, want) {
			c.T.Errorf("range %q from the bucket: got %d with %d bytes (%v), want %d bytes", span, answer.StatusCode, len(body), err, len(want))
		}
	}
	head := c.Call(http.MethodHead, path, "")
	if head.Status != http.StatusOK || head.Header.Get("Content-Length") != strconv.Itoa(size) {
		c.T.Errorf("HEAD: got %d %v, want 200 with the length", head.Status, head.Header)
	}
}

func deleted(c *Case) {
	path, _ := c.exportPattern(1000)
	for range 2 {
		if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent {
			c.T.Errorf("DELETE: got %d, want 204", answer.Status)
		}
	}
	if answer := c.Call(http.MethodGet, path, ""); answer.Status != http.StatusGone || answer.Problem(c.T).Code != "OUTPUT_DELETED" {
		c.T.Errorf("GET after DELETE: got %d %s, want 410 OUTPUT_DELETED", answer.Status, answer.Body)
	}
}

func downloadOfRunning(c *Case) {
	hold := scripts.Pipe(c.T)
	task := c.StartScripted("one", "wait:"+hold+" success")
	c.Running(task)
	answer := c.Call(http.MethodGet, "/download/"+task, "")
	if answer.Status != http.StatusBadRequest || answer.Problem(c.T).Code != "NOT_READY" {
		c.T.Errorf("GET: got %d %s, want 400 NOT_READY", answer.Status, answer.Body)
	}
	scripts.Release(c.T, hold)
	c.End(task)
	if answer := c.Call(http.MethodGet, "/download/export_mods_1_00000000", ""); answer.Status != http.StatusNotFound {
		c.T.Errorf("GET of an unknown task: got %d, want 404", answer.Status)
	}
}
