package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// measureWorker runs the export worker without a stack, on collections that another process
// serves.
func measureWorker(ctx context.Context, t *table) error {
	bucket, err := beginBucket()
	if err != nil {
		return err
	}
	defer func() { _ = bucket.end() }()
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	worker := filepath.Join(folder, "worker")
	if err := build(ctx, worker, "./functions/worker/bootstrap"); err != nil {
		return err
	}
	for _, entities := range []string{"72", "1000", "10000"} {
		if err := measureExport(ctx, t, worker, entities, bucket); err != nil {
			return err
		}
	}
	return nil
}

// measureExport runs an export twice: with the callback, and with the worker contract and a
// heartbeat each second.
func measureExport(ctx context.Context, t *table, worker, entities string, bucket *bucketServer) error {
	served, err := startPart("source", entities)
	if err != nil {
		return err
	}
	defer func() { _ = served.end() }()
	text, err := served.line()
	if err != nil {
		return err
	}
	url, root, _ := strings.Cut(text, " ")
	var envelopesRead string
	callback := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		envelopesRead = string(body)
		_, _ = io.WriteString(w, `{"received":true}`)
	}))
	defer callback.Close()
	plane, err := conformance.NewPlane(clock.System{}, contract.TaskEnvelope{TaskID: "bench", Attempt: 1, HeartbeatIntervalMS: 1000}, func(c *conformance.Call, _ int) *conformance.Answer {
		envelopesRead = string(c.Body)
		return nil
	})
	if err != nil {
		return err
	}
	defer plane.Close()
	envelope, err := plane.Variable()
	if err != nil {
		return err
	}
	for by, variable := range map[string]string{"": "CALLBACK_URL=" + callback.URL, ", with heartbeats": envelope} {
		command := exec.CommandContext(ctx, worker)
		command.Env = append([]string{
			"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "TASK_ID=bench", "BATCH_ID=single", "PI=" + root, "EXPORT_FORMAT=mods",
			`EXPORT_OPTIONS={"recursive":true,"maxDepth":100}`, "SOURCE_API_URL=" + url, variable,
		}, bucket.env...)
		startedAt := time.Now()
		if text, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("the worker failed: %w: %.2000s", err, text)
		}
		if err := addExport(t, "worker, "+entities+" entities"+by, time.Since(startedAt), envelopesRead); err != nil {
			return err
		}
	}
	return nil
}

// addExport adds the figures that a worker has reported under either contract.
func addExport(t *table, name string, took time.Duration, envelopesRead string) error {
	var report struct {
		Outcome string `json:"outcome"`
		Status  string `json:"status"`
		Size    int64  `json:"output_file_size"`
		Output  struct {
			Size int64 `json:"byteSize"`
		} `json:"output"`
		Metrics json.RawMessage `json:"metrics"`
	}
	var metrics struct {
		// Peak is the resident memory that the kernel reports to the worker.
		// The figure for the parent would include the parent's own.
		Peak float64 `json:"peak_memory_mb"`
	}
	if err := json.Unmarshal([]byte(envelopesRead), &report); err != nil || report.Status != "success" && report.Outcome != "SUCCEEDED" {
		return errors.Join(errors.New("got no success from the worker: "+envelopesRead), err)
	}
	if err := json.Unmarshal(contract.ExportMetrics(report.Metrics), &metrics); err != nil {
		return fmt.Errorf("cannot read the worker's metrics: %w", err)
	}
	t.add(name, "time", "%.2f s", took.Seconds())
	t.add(name, "peak memory", "%.1f MB", metrics.Peak)
	t.add(name, "bytes", "%d", report.Size+report.Output.Size)
	return nil
}

// measureDownload measures the download of an output of 1 GiB.
func measureDownload(ctx context.Context, t *table) error {
	const size = 1 << 30
	c, addresses, err := startStack("-work", fmt.Sprintf("upload:%d", size))
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	s, err := export(ctx, addresses.URL)
	for err == nil && s.Status == "processing" {
		err = request(ctx, http.MethodGet, addresses.URL+"/status/"+s.TaskID+"?wait=20", "", &s)
	}
	if err != nil || s.Status != "success" {
		return fmt.Errorf("cannot create the output: %s %s %w", s.State, s.Error, err)
	}
	before, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	if err := resetPeak(c.command.Process.Pid); err != nil {
		return err
	}
	startedAt := time.Now()
	answer, err := client.Get(addresses.URL + "/download/" + s.TaskID) //nolint:noctx // measured as a client does it
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || n != size {
		return fmt.Errorf("download ended after %d bytes: %w", n, err)
	}
	took := time.Since(startedAt)
	after, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	t.add("download of 1 GiB", "MiB/s", "%.0f", mebi(n)/took.Seconds())
	t.add("download of 1 GiB", "the server's peak memory grows by", "%.1f MiB", mebi(after.peak-before.resident))
	return nil
}

// measureWaiting submits 10,000 runs to a pool of one machine and measures their cost while
// they are queued.
func measureWaiting(ctx context.Context, t *table) error {
	const runs = 10_000
	c, addresses, err := startStack("-work", "wait", "-limit", "1")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	if _, err := export(ctx, addresses.URL); err != nil {
		return err
	}
	before, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	startedAt := time.Now()
	for range runs {
		if _, err := export(ctx, addresses.URL); err != nil {
			return err
		}
	}
	took := time.Since(startedAt)
	pause(5 * time.Second)
	after, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	pause(10 * time.Second)
	idle, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	const name = "10,000 waiting runs"
	t.add(name, "accepted per second, one client", "%.0f", runs/took.Seconds())
	t.add(name, "memory per run", "%.1f KiB", float64(after.resident-before.resident)/runs/1024)
	t.add(name, "CPU while idle", "%.1f %% of a core", 100*(idle.cpu-after.cpu).Seconds()/10)
	return nil
}

func pause(d time.Duration) { <-time.After(d) }
