package suite

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/contract"
)

func downloads() []Test {
	return []Test{
		{Name: "an output is served whole and in parts", Needs: []Capability{Plays}, Run: wholeAndParts},
		{Name: "an output up to 8 MiB is streamed", Needs: []Capability{Plays}, Run: streamed},
		{Name: "a larger output is redirected to the bucket", Needs: []Capability{Plays}, Run: redirected},
		{Name: "a deleted output is gone", Needs: []Capability{Plays}, Run: deleted},
		{Name: "nothing is served of a run that goes on", Needs: []Capability{Plays}, Run: nothingYet},
	}
}

// left begins a run that leaves a pattern of the size, and waits for its end.
func (c *Case) left(size int) (path string, status contract.Status) {
	c.T.Helper()
	status = c.End(c.Play("one", fmt.Sprintf("output:%d", size)))
	if status.Status != contract.StatusSuccess || *status.OutputFileSize != int64(size) {
		c.T.Fatalf("it ended as %+v", status)
	}
	return "/download/" + status.TaskID, status
}

func wholeAndParts(c *Case) {
	const size = 300_000
	path, before := c.left(size)
	content := stacktest.Pattern(size)
	head := c.Call(http.MethodHead, path, "")
	tag := head.Header.Get("Etag")
	if head.Status != http.StatusOK || head.Header.Get("Content-Length") != strconv.Itoa(size) || len(head.Body) > 0 || tag == "" {
		c.T.Errorf("HEAD: %d %v", head.Status, head.Header)
	}
	for _, row := range []struct {
		name    string
		headers []string
		status  int
		body    []byte
	}{
		{"the middle", []string{"Range", "bytes=5-14"}, http.StatusPartialContent, content[5:15]},
		{"the last bytes", []string{"Range", "bytes=-20"}, http.StatusPartialContent, content[size-20:]},
		{"the rest", []string{"Range", "bytes=299990-"}, http.StatusPartialContent, content[299_990:]},
		{"behind the end", []string{"Range", "bytes=300000-"}, http.StatusRequestedRangeNotSatisfiable, nil},
		{"the rest of this one", []string{"Range", "bytes=299000-", "If-Range", tag}, http.StatusPartialContent, content[299_000:]},
		{"the rest of another", []string{"Range", "bytes=299000-", "If-Range", `"x"`}, http.StatusOK, content},
		{"the client has it", []string{"If-None-Match", tag}, http.StatusNotModified, []byte{}},
		{"the client has another", []string{"If-None-Match", `"x"`}, http.StatusOK, content},
		{"the client wants it", []string{"If-Match", tag}, http.StatusOK, content},
		{"the client wants another", []string{"If-Match", `"x"`}, http.StatusPreconditionFailed, nil},
		{"the whole", nil, http.StatusOK, content},
	} {
		answer := c.Call(http.MethodGet, path, "", row.headers...)
		if answer.Status != row.status || row.body != nil && !bytes.Equal(answer.Body, row.body) {
			c.T.Errorf("%s: %d with %d bytes", row.name, answer.Status, len(answer.Body))
		}
	}
	after := c.End(before.TaskID)
	if after.OutputExpiresAt.After(before.OutputExpiresAt) {
		c.T.Errorf("the output expires at %s, before it was downloaded at %s", after.OutputExpiresAt, before.OutputExpiresAt)
	}
}

// mostStreamed is the largest output that is not redirected.
const mostStreamed = 8 << 20

func streamed(c *Case) {
	path, _ := c.left(mostStreamed)
	answer := c.Call(http.MethodGet, path, "")
	if answer.Status != http.StatusOK || !bytes.Equal(answer.Body, stacktest.Pattern(mostStreamed)) {
		c.T.Errorf("GET: %d with %d bytes", answer.Status, len(answer.Body))
	}
}

func redirected(c *Case) {
	const size = mostStreamed + 1
	path, _ := c.left(size)
	answer := c.Call(http.MethodGet, path, "")
	place := answer.Header.Get("Location")
	if answer.Status != http.StatusFound || place == "" {
		c.T.Fatalf("GET: %d %v", answer.Status, answer.Header)
	}
	for span, want := range map[string][]byte{"": stacktest.Pattern(size), "bytes=100-199": stacktest.Pattern(size)[100:200]} {
		request, err := http.NewRequestWithContext(c.T.Context(), http.MethodGet, place, nil)
		if err != nil {
			c.T.Fatal("the redirect leads nowhere")
		}
		if span != "" {
			request.Header.Set("Range", span)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			c.T.Fatal("the bucket does not answer")
		}
		body, err := io.ReadAll(answer.Body)
		if closed := answer.Body.Close(); err != nil || closed != nil || !bytes.Equal(body, want) {
			c.T.Errorf("%q from the bucket: %d with %d bytes (%v)", span, answer.StatusCode, len(body), err)
		}
	}
	head := c.Call(http.MethodHead, path, "")
	if head.Status != http.StatusOK || head.Header.Get("Content-Length") != strconv.Itoa(size) {
		c.T.Errorf("HEAD: %d %v", head.Status, head.Header)
	}
}

func deleted(c *Case) {
	path, _ := c.left(1000)
	for range 2 {
		if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent {
			c.T.Errorf("DELETE: %d", answer.Status)
		}
	}
	if answer := c.Call(http.MethodGet, path, ""); answer.Status != http.StatusGone {
		c.T.Errorf("GET after DELETE: %d", answer.Status)
	}
}

func nothingYet(c *Case) {
	hold := Pipe(c.T)
	task := c.Play("one", "wait:"+hold+" success")
	c.Running(task)
	answer := c.Call(http.MethodGet, "/download/"+task, "")
	if answer.Status != http.StatusBadRequest || answer.Problem(c.T).Code != "NOT_READY" {
		c.T.Errorf("GET: %d %s", answer.Status, answer.Body)
	}
	Release(c.T, hold)
	c.End(task)
	if answer := c.Call(http.MethodGet, "/download/export_mods_1_00000000", ""); answer.Status != http.StatusNotFound {
		c.T.Errorf("GET of what never was: %d", answer.Status)
	}
}
