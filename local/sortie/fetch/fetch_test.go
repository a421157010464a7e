package fetch_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/fetch"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	taskID = "export_mods_1704857234567_a3f8c2d1"
	served = "01K9XVBAQZF9EHDRXGBEADTZYY-collection.xml"
)

// source serves one file and breaks the connection in its first responses.
type source struct {
	content []byte
	etag    string
	// breaks is the number of responses that end halfway.
	breaks int32
	// changes is the content from the second response on; nil means no change.
	changes []byte
	name    string
	answers atomic.Int32
	ranges  atomic.Int32
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, content, etag := s.answers.Add(1), s.content, s.etag
	if n > 1 && s.changes != nil {
		content, etag = s.changes, `"changed"`
	}
	from := 0
	if asked := r.Header.Get("Range"); asked != "" && r.Header.Get("If-Range") == etag {
		s.ranges.Add(1)
		from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(asked, "bytes="), "-"))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
	}
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", s.name))
	w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	if rest := content[from:]; n <= s.breaks {
		_, _ = w.Write(rest[:len(rest)/2])
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(content[from:])
}

func setup(t *testing.T, s http.Handler) fetch.Job {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{URL: server.URL, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return fetch.Job{Client: c, TaskID: taskID, Size: -1}
}

func someBytes(size int) []byte {
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		panic(err)
	}
	return content
}

func TestToFileSurvivesBrokenConnections(t *testing.T) {
	t.Parallel()
	content, other := someBytes(100_000), someBytes(70_000)
	for name, row := range map[string]struct {
		source *source
		want   []byte
		ranges int32
	}{
		"at once":                      {&source{content: content, etag: `"v1"`}, content, 0},
		"after breaks":                 {&source{content: content, etag: `"v1"`, breaks: 3}, content, 3},
		"from a server without ranges": {&source{content: content, breaks: 2}, content, 0},
		"with a weak etag":             {&source{content: content, etag: `W/"v1"`, breaks: 2}, content, 0},
		"after a change of the file":   {&source{content: content, etag: `"v1"`, breaks: 1, changes: other}, other, 0},
		"of no bytes":                  {&source{content: []byte{}, etag: `"v1"`}, []byte{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.source.name = served
			job, dir := setup(t, row.source), t.TempDir()
			var last int64
			job.Progress = func(done, _ int64) { last = done }
			path, size, err := fetch.ToFile(t.Context(), job, dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, served); path != want {
				t.Errorf("saved as %s, want %s", path, want)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, row.want) {
				t.Errorf("got %d other bytes, error %v", len(got), err)
			}
			if size != int64(len(row.want)) || last != size {
				t.Errorf("got size %d, progress %d, want %d", size, last, len(row.want))
			}
			if got := row.source.ranges.Load(); got != row.ranges {
				t.Errorf("got %d range requests, want %d", got, row.ranges)
			}
			assertAlone(t, dir, served)
		})
	}
}

func TestToFileLeavesNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		handler http.Handler
		size    int64
	}{
		"gone":           {http.NotFoundHandler(), -1},
		"another length": {&source{content: someBytes(10), name: served}, 11},
		"always broken":  {&source{content: someBytes(3), name: served, breaks: 1 << 30}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job := setup(t, row.handler)
			job.Size = row.size
			if err := os.WriteFile(filepath.Join(dir, "mine.xml"), []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			if path, _, err := fetch.ToFile(t.Context(), job, filepath.Join(dir, "mine.xml")); err == nil {
				t.Errorf("saved as %s", path)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "mine.xml")); err != nil || string(got) != "before" {
				t.Errorf("the existing file: got %q, error %v", got, err)
			}
			assertAlone(t, dir, "mine.xml")
		})
	}
}

func TestToFileEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	job, dir := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("<mods>"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
		<-r.Context().Done()
	})), t.TempDir()
	job.Progress = func(int64, int64) { cancel() }
	if _, _, err := fetch.ToFile(ctx, job, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	assertAlone(t, dir, "")
}

func TestToFilePlaces(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ target, want string }{
		"an existing folder":     {"", served},
		"a new folder":           {"new/er/", "new/er/" + served},
		"a name":                 {"x.xml", "x.xml"},
		"a name in a new folder": {"new/x.xml", "new/x.xml"},
		"a very long name":       {strings.Repeat("x", 250), strings.Repeat("x", 250)},
		"an existing file":       {"old.xml", "old.xml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "old.xml"), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			job := setup(t, &source{content: []byte("<mods/>"), name: served})
			job.Force = true
			path, _, err := fetch.ToFile(t.Context(), job, dir+"/"+row.target)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, row.want); filepath.Clean(path) != want {
				t.Errorf("saved as %s, want %s", path, want)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "<mods/>" {
				t.Errorf("read %q, error %v", got, err)
			}
		})
	}
}

func TestToFileKeepsAnExistingFileWithOtherContent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before string
		force  bool
		fails  bool
	}{
		"other length":         {"old", false, true},
		"same length":          {"<dcdc/>", false, true},
		"same content":         {"<mods/>", false, false},
		"other content, force": {"old", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "x.xml")
			if err := os.WriteFile(file, []byte(row.before), 0o600); err != nil {
				t.Fatal(err)
			}
			job := setup(t, &source{content: []byte("<mods/>"), name: served})
			job.Force = row.force
			_, _, err := fetch.ToFile(t.Context(), job, file)
			want := "<mods/>"
			if row.fails {
				want = row.before
			}
			if errors.Is(err, fetch.ErrExists) != row.fails || !row.fails && err != nil {
				t.Errorf("got error %v, want ErrExists: %v", err, row.fails)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("got %q (%v), want %q", got, err, want)
			}
			assertAlone(t, dir, "x.xml")
		})
	}
}

// TestToFileNamesCarryTheFormat downloads two formats of one record into one
// folder.
func TestToFileNamesCarryTheFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for format, row := range map[string]struct{ served, want string }{
		"mods":    {"P.xml", "P.mods.xml"},
		"dc":      {"P.xml", "P.dc.xml"},
		"marcxml": {"P-collection.marcxml.xml", "P-collection.marcxml.xml"},
		"csv":     {"P.csv", "P.csv"},
		"tei":     {"P", "P.tei"},
	} {
		job := setup(t, &source{content: []byte(format), name: row.served})
		job.Format = format
		path, _, err := fetch.ToFile(t.Context(), job, dir)
		if err != nil || filepath.Base(path) != row.want {
			t.Errorf("%s: got %s (%v), want %s", row.served, path, err, row.want)
		}
	}
}

func TestToFileWritesToADevice(t *testing.T) {
	t.Parallel()
	job := setup(t, &source{content: []byte("<mods/>"), name: served})
	path, size, err := fetch.ToFile(t.Context(), job, os.DevNull)
	if err != nil || path != os.DevNull || size != 7 {
		t.Errorf("wrote %d bytes to %s, error %v", size, path, err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s was replaced", os.DevNull)
	}
}

func TestToFileKeepsALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.xml"), filepath.Join(dir, "link.xml")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Symlink("file.xml", link)); err != nil {
		t.Fatal(err)
	}
	job := setup(t, &source{content: []byte("<mods/>"), name: served})
	job.Force = true
	if path, _, err := fetch.ToFile(t.Context(), job, link); err != nil || path != link {
		t.Fatalf("saved as %s, error %v", path, err)
	}
	if to, err := os.Readlink(link); err != nil || to != "file.xml" {
		t.Errorf("link: got target %q, error %v, want file.xml", to, err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "<mods/>" {
		t.Errorf("target of the link: got %q, error %v", got, err)
	}
}

func TestToWriter(t *testing.T) {
	t.Parallel()
	content := someBytes(100_000)
	for name, row := range map[string]struct {
		source *source
		fails  bool
	}{
		"at once":        {&source{content: content}, false},
		"after a break":  {&source{content: content, etag: `"v1"`, breaks: 1}, false},
		"without ranges": {&source{content: content, breaks: 1}, true},
		"after a change": {&source{content: content, etag: `"v1"`, breaks: 1, changes: someBytes(9)}, true},
		"a hostile name": {&source{content: content, name: "/etc/passwd"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			_, err := fetch.ToWriter(t.Context(), setup(t, row.source), &got)
			if row.fails != (err != nil) {
				t.Errorf("error %v", err)
			}
			if err == nil && !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d other bytes", got.Len())
			}
		})
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for served, want := range map[string]string{
		"01K9-collection.xml":     "01K9-collection.xml",
		"../../etc/passwd":        "passwd",
		`C:\boot.ini`:             "boot.ini",
		".bashrc":                 "task",
		"..":                      "task",
		"":                        "task",
		"a/":                      "task",
		"x\x1b[2J.xml":            "task",
		strings.Repeat("x", 1000): "task",
	} {
		if got := fetch.FileName(served, "task"); got != want {
			t.Errorf("FileName(%q): got %q, want %q", served, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, seed := range []string{"", ".", "../x", "x\x00", "a/b", `a\b`, "ordinary.xml"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, served string) {
		dir := filepath.Join("some", "folder")
		if got := filepath.Dir(filepath.Join(dir, fetch.FileName(served, "task"))); got != dir {
			t.Errorf("FileName(%q): got a file in %s, want %s", served, got, dir)
		}
	})
}

// assertAlone checks that the folder has no other file.
func assertAlone(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != name {
			t.Errorf("%s is left behind", e.Name())
		}
	}
}
