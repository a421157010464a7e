package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSingleEntity(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.add(0, pinax("A title"), 1)
	r, doc := b.mustRun()
	wantCounts(t, r, 1, 0, 0)
	if want := "exports/export_mods_1_abc/" + testPI(0) + ".xml"; r.OutputR2Key != want || r.OutputFileName != testPI(0)+".xml" {
		t.Errorf("got callback %+v, want key %s", r, want)
	}
	if !strings.Contains(doc, "<title>A title</title>") || strings.Contains(doc, "modsCollection") {
		t.Errorf("got document\n%s\nwant one title outside of a collection", doc)
	}
	if !slices.Equal(b.bucket.types, []string{"application/xml"}) {
		t.Errorf("got content types %v, want application/xml", b.bucket.types)
	}
}

func TestCallbackShape(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", recursive())
	b.archive.add(0, pinax("root"), 1)
	b.archive.add(1, nil)
	b.mustRun()
	got, _ := json.Marshal(b.calls.raw[0])
	want := fmt.Sprintf(`{"batch_id":"single","metrics":{"entities_exported":2,"entities_failed":0,"entities_incomplete":1,"peak_memory_mb":30,"total_time_ms":0},`+
		`"output_file_name":"%[1]s-collection.xml","output_file_size":%[2]d,"output_r2_key":"exports/export_mods_1_abc/%[1]s-collection.xml","status":"success","task_id":"export_mods_1_abc"}`,
		testPI(0), len(b.bucket.object(b.config.Key())))
	if string(got) != want {
		t.Errorf("got callback\n%s, want\n%s", got, want)
	}
}

func TestOrderIsBreadthFirst(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int][]int{0: {0}, 1: {0, 3, 1}, 2: {0, 3, 1, 9, 2, 5}, 9: {0, 3, 1, 9, 2, 5, 7}} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			t.Parallel()
			o := recursive()
			o.MaxDepth = depth
			b := newBench(t, "mods", o)
			b.archive.add(0, pinax("0"), 3, 1)
			b.archive.add(3, pinax("3"), 9, 1, 2)
			b.archive.add(1, pinax("1"), 5, 9)
			for _, leaf := range []int{9, 2, 7} {
				b.archive.add(leaf, pinax("leaf"))
			}
			b.archive.add(5, pinax("5"), 7)
			_, doc := b.mustRun()
			var got []string
			for _, match := range regexp.MustCompile(`ID="entity-(\w+)"`).FindAllStringSubmatch(doc, -1) {
				got = append(got, match[1])
			}
			var pis []string
			for _, n := range want {
				pis = append(pis, testPI(n))
			}
			if !slices.Equal(got, pis) {
				t.Errorf("got order %v, want %v", got, pis)
			}
		})
	}
}

func TestCallbackIsRetried(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		answer func(n int) int
		calls  int
	}{
		{"at once", func(int) int { return 204 }, 1},
		{"after 503 and 429", func(n int) int { return []int{503, 429, 500, 200}[min(n-1, 3)] }, 4},
		{"refused", func(int) int { return http.StatusGone }, 1},
		{"redirected", func(int) int { return http.StatusTemporaryRedirect }, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "mods", DefaultOptions())
			b.archive.add(0, pinax("x"))
			b.calls.answer = row.answer
			if _, doc, err := b.run(); err != nil || doc == "" { // the output is stored: the export is done
				t.Errorf("got error %v, want none", err)
			}
			if n := b.calls.count(); n != row.calls {
				t.Errorf("got %d callbacks, want %d", n, row.calls)
			}
		})
	}
}

func TestCallbackRetriesEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.add(0, pinax("x"))
	b.calls.answer = func(int) int { return 502 }
	start := b.clock.Now()
	if _, _, err := b.run(); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	if took := b.clock.Now().Sub(start); took < 5*time.Minute || took > 10*time.Minute {
		t.Errorf("got retries for %v, want 5 to 10 minutes", took)
	}
	if !bytes.Contains(b.logged.bytes(), []byte("the output is stored, but the report was not accepted")) {
		t.Error("got no log line about the report, want one")
	}
}

func TestFailedUploadIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.add(0, pinax("x"))
	b.bucket.fail = errors.New("https://account.example/?X-Amz-Signature=abc refused")
	r, _, err := b.run()
	if err == nil || r.Status != "error" || r.Error != "Failed to upload "+b.config.Key()+" to the bucket arke-exports" {
		t.Errorf("got %v, callback %+v, want the failure in both", err, r)
	}
}

func TestDiskFailureIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.add(0, pinax("x"))
	b.ports.TempDir = filepath.Join(b.ports.TempDir, "gone")
	err := Run(t.Context(), b.config, b.ports)
	if r := b.calls.last(); err == nil || r.Status != "error" || !strings.Contains(r.Error, "temporary file") || strings.Contains(r.Error, "gone") {
		t.Errorf("got %v, callback %+v, want the failure in both", err, r)
	}
}

func TestSIGTERMWithoutCancelIsNotReported(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		stop func(b *bench, cancel func())
	}{
		{"while reading", func(b *bench, cancel func()) {
			b.archive.answers["/entities/"+testPI(1)] = func(_ http.ResponseWriter, r *http.Request, _ int) {
				cancel()
				<-r.Context().Done()
			}
		}},
		{"while waiting to ask again", func(b *bench, cancel func()) {
			b.archive.answers["/entities/"+testPI(1)] = func(w http.ResponseWriter, _ *http.Request, n int) {
				if n == 2 {
					cancel()
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}},
		{"while uploading", func(b *bench, cancel func()) {
			b.bucket.during = func(ctx context.Context) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "mods", recursive())
			b.archive.add(0, pinax("root"), 1)
			b.archive.add(1, pinax("one"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			row.stop(b, cancel)
			_, doc, err := b.runIn(ctx)
			if !errors.Is(err, context.Canceled) || doc != "" || b.calls.count() != 0 {
				t.Errorf("got %v, %d callbacks, document %q, want ErrTerminated and neither", err, b.calls.count(), doc)
			}
		})
	}
}

func TestProgressIsLoggedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", recursive())
	children := make([]int, 50)
	for i := range children {
		children[i] = i + 1
		b.archive.add(i+1, pinax("x"))
	}
	b.archive.add(0, pinax("root"), children...)
	b.archive.answers["/entities/"+testPI(30)] = func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			w.Header().Set("Retry-After", "25") // the clock moves on
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b.archive.serve(w, r)
	}
	b.mustRun()
	if n := bytes.Count(b.logged.bytes(), []byte(`"msg":"exporting"`)); n != 1 {
		t.Errorf("got %d log lines, want 1", n)
	}
}

func TestMainExitCode(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		change  func(b *bench, env map[string]string)
		connect func(b *bench) Connect
		code    int
		status  string
	}{
		{name: "done", code: 0, status: "success"},
		{name: "root missing", code: 1, status: "error", change: func(b *bench, _ map[string]string) { clear(b.archive.entities) }},
		{name: "bad option", code: 1, status: "error", change: func(_ *bench, env map[string]string) { env["EXPORT_OPTIONS"] = `{"x":1}` }},
		{name: "no callback URL", code: 1, change: func(_ *bench, env map[string]string) { delete(env, "CALLBACK_URL") }},
		{name: "no bucket", code: 1, status: "error", connect: func(*bench) Connect {
			return func(BucketAuth) (Uploader, error) { return nil, errors.New("no bucket") }
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "mods", DefaultOptions())
			b.archive.add(0, pinax("x"))
			env := goodEnv()
			env["SOURCE_API_URL"], env["CALLBACK_URL"], env["FLY_MACHINE_ID"] = b.archive.url, b.config.CallbackURL, "machine_1"
			if row.change != nil {
				row.change(b, env)
			}
			connect := func(BucketAuth) (Uploader, error) { return b.bucket, nil }
			if row.connect != nil {
				connect = row.connect(b)
			}
			if code := MainWith(t.Context(), environ(env), b.logged, connect); code != row.code {
				t.Errorf("got code %d, want %d", code, row.code)
			}
			if r := b.calls.last(); r.Status != row.status {
				t.Errorf("got callback %+v, want status %s", r, row.status)
			}
			for line := range bytes.Lines(b.logged.bytes()) {
				var entry map[string]any
				if err := json.Unmarshal(line, &entry); err != nil || entry["task_id"] != env["TASK_ID"] ||
					entry["batch_id"] != "single" || entry["machine_id"] != "machine_1" {
					t.Errorf("got log line %s, want JSON with the ids", line)
				}
				if bytes.Contains(line, []byte("very-secret")) || bytes.Contains(line, []byte("s3cr3t")) {
					t.Errorf("got a secret in the log: %s, want it masked", line)
				}
			}
		})
	}
}

func TestMainExitCodeAfterSIGTERM(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.add(0, pinax("x"))
	ctx, cancel := context.WithCancel(t.Context())
	b.bucket.during = func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	env := goodEnv()
	env["SOURCE_API_URL"], env["CALLBACK_URL"] = b.archive.url, b.config.CallbackURL
	code := MainWith(ctx, environ(env), b.logged, func(BucketAuth) (Uploader, error) { return b.bucket, nil })
	if code != 143 || b.calls.count() != 0 {
		t.Errorf("got code %d, %d callbacks, want 143, none", code, b.calls.count())
	}
}
