package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"

	"github.com/sortie-dev/sortie/functions/worker/formats"
)

// bench is a worker with its ports.
type bench struct {
	t       *testing.T
	archive *archive
	config  Config
	ports   Ports
	bucket  *bucket
	calls   *callbacks
	clock   *hasty
	logged  *safeBuffer
}

func newBench(t *testing.T, format string, options Options) *bench {
	t.Helper()
	b := &bench{
		t: t, archive: newArchive(t), bucket: &bucket{objects: map[string][]byte{}}, clock: newHasty(),
		logged: &safeBuffer{}, calls: newCallbacks(t),
	}
	b.config = Config{
		TaskID: "export_mods_1_abc", BatchID: "single", PI: mustPI(t, testPI(0)), Format: format, Options: options,
		Bucket: BucketAuth{Bucket: "arke-exports"}, CallbackURL: b.calls.url + "/callback/x?token=very-secret",
		SourceURL: b.archive.url, Links: formats.DefaultLinks(),
	}
	b.ports = Ports{
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}, Outputs: b.bucket, Clock: b.clock,
		Jitter: func() float64 { return 0.5 }, PeakMemory: func() int64 { return 29<<20 + 1 },
		Log: slog.New(slog.NewJSONHandler(b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})), TempDir: t.TempDir(),
	}
	t.Cleanup(b.ports.HTTP.CloseIdleConnections)
	return b
}

func recursive() Options {
	o := DefaultOptions()
	o.Recursive = true
	return o
}

// run runs the worker and returns the last callback, the document and the error of
// Run. It fails if a temporary file is left.
func (b *bench) run() (report, string, error) {
	b.t.Helper()
	return b.runIn(b.t.Context())
}

func (b *bench) runIn(ctx context.Context) (report, string, error) {
	b.t.Helper()
	err := Run(ctx, b.config, b.ports)
	left, dirErr := os.ReadDir(b.ports.TempDir)
	if dirErr != nil || len(left) != 0 {
		b.t.Errorf("got temporary files %v, %v, want none", left, dirErr)
	}
	if bytes.Contains(b.logged.bytes(), []byte("very-secret")) {
		b.t.Error("got the callback's secret in the log, want it masked")
	}
	return b.calls.last(), string(b.bucket.object(b.config.Key())), err
}

// mustRun fails the test unless the export succeeds.
func (b *bench) mustRun() (report, string) {
	b.t.Helper()
	r, doc, err := b.run()
	if err != nil || r.Status != "success" || r.Metrics == nil {
		b.t.Fatalf("got %v, callback %+v, want a success\n%s", err, r, b.logged.bytes())
	}
	if int64(len(doc)) != r.OutputFileSize || doc == "" {
		b.t.Fatalf("got output_file_size %d, want %d", r.OutputFileSize, len(doc))
	}
	return r, doc
}

// wantCounts compares exported, incomplete and failed.
func wantCounts(t *testing.T, r report, exported, incomplete, failed int) {
	t.Helper()
	m := r.Metrics
	if m.EntitiesExported != exported || m.EntitiesIncomplete != incomplete || m.EntitiesFailed != failed {
		t.Errorf("got exported, incomplete, failed %d, %d, %d, want %d, %d, %d",
			m.EntitiesExported, m.EntitiesIncomplete, m.EntitiesFailed, exported, incomplete, failed)
	}
}

// hasty is a clock whose timers fire at once and advance it. Timers of attemptLimit do
// not fire until slow is called.
type hasty struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
	slow  func(d time.Duration) <-chan time.Time
}

const attemptLimit = 77 * time.Second

func newHasty() *hasty { return &hasty{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (h *hasty) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hasty) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == attemptLimit || d == 30*time.Second {
		if h.slow != nil {
			return h.slow(d), func() {}
		}
		return make(chan time.Time), func() {}
	}
	h.now = h.now.Add(d)
	h.waits = append(h.waits, d)
	fired := make(chan time.Time, 1)
	fired <- h.now
	return fired, func() {}
}

var _ clock.Clock = (*hasty)(nil)

// bucket is an Uploader in memory.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	types   []string
	fail    error
	during  func(ctx context.Context) error
}

func (b *bucket) Upload(ctx context.Context, key string, body io.ReaderAt, size int64, contentType string) error {
	if b.during != nil {
		if err := b.during(ctx); err != nil {
			return err
		}
	}
	if b.fail != nil {
		return b.fail
	}
	content := make([]byte, size)
	if _, err := body.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = content
	b.types = append(b.types, contentType)
	return nil
}

func (b *bucket) object(key string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key]
}

// report is the body of the callback.
type report struct {
	TaskID         string   `json:"task_id"`
	BatchID        string   `json:"batch_id"`
	Status         string   `json:"status"` // success, error
	OutputR2Key    string   `json:"output_r2_key,omitempty"`
	OutputFileName string   `json:"output_file_name,omitempty"`
	OutputFileSize int64    `json:"output_file_size,omitempty"`
	Metrics        *Metrics `json:"metrics,omitempty"`
	Error          string   `json:"error,omitempty"`
}

// callbacks is the receiver of the callbacks.
type callbacks struct {
	url    string
	mu     sync.Mutex
	got    []report
	raw    []map[string]any
	answer func(n int) int
}

func newCallbacks(t *testing.T) *callbacks {
	t.Helper()
	c := &callbacks{answer: func(int) int { return http.StatusOK }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got report
		raw := map[string]any{}
		if json.Unmarshal(body, &got) != nil || json.Unmarshal(body, &raw) != nil || r.Method != http.MethodPost ||
			r.URL.Query().Get("token") != "very-secret" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.got, c.raw = append(c.got, got), append(c.raw, raw)
		status := c.answer(len(c.got))
		c.mu.Unlock()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"received":true}`))
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *callbacks) last() report {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) == 0 {
		return report{}
	}
	return c.got[len(c.got)-1]
}

func (c *callbacks) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *safeBuffer) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.buf.Bytes())
}
