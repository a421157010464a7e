package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const content = "<mods>twenty-two bytes</mods>"

func serveContent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	w.Header().Set("Content-Disposition", `attachment; filename="01K9-collection.xml"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
}

func TestOpenStartsAtAnOffset(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		from  int64
		etag  string
		start int64
	}{
		"the whole file":  {0, "", 0},
		"the rest":        {6, `"v1"`, 6},
		"a changed file":  {6, `"v0"`, 0},
		"without an etag": {6, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setup(t, inMemory{http.HandlerFunc(serveContent)})
			out, err := c.Open(t.Context(), taskID, row.from, row.etag)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(out.Body)
			if err != nil || string(text) != content[row.start:] {
				t.Errorf("got %q, error %v", text, err)
			}
			if out.Start != row.start || out.Size != int64(len(content)) || out.ETag != `"v1"` || out.FileName != "01K9-collection.xml" {
				t.Errorf("got %+v", out)
			}
			if err := out.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenSendsNoTokenToTheObjectStore(t *testing.T) {
	t.Parallel()
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("object store: got the token")
		}
		if r.URL.Query().Get("X-Amz-Signature") != "abc" {
			t.Errorf("got %s, want the presigned URL unchanged", r.URL)
		}
		serveContent(w, r)
	}))
	defer bucket.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			t.Error("server: got no token")
		}
		http.Redirect(w, r, bucket.URL+"/kept/file?X-Amz-Signature=abc", http.StatusFound)
	}))
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, Token: "s3cret", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Open(t.Context(), taskID, 6, `"v1"`)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	if err != nil || string(text) != content[6:] {
		t.Errorf("got %q, error %v", text, err)
	}
	bucket.Close()
	if _, err = c.Open(t.Context(), taskID, 0, ""); err == nil || strings.Contains(err.Error(), "Amz") {
		t.Errorf("got error %v, want one without the presigned URL", err)
	}
}

func TestOpenRefusesWrongRedirects(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"in a circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) },
		"to a file":   func(w http.ResponseWriter, _ *http.Request) { redirect(w, "file:///etc/passwd") },
		"to nowhere":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) },
		"a part of no range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes */29")
			w.WriteHeader(http.StatusPartialContent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := setup(t, inMemory{handler}).Open(t.Context(), taskID, 0, ""); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func redirect(w http.ResponseWriter, target string) {
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusFound)
}
