package runs_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// upload stores an output of a machine's worker unless body is empty, and returns
// the callback that reports it with size.
func (h *fixture) upload(m *machine, body string, size int64) contract.Callback {
	key := limit.OutputPrefix(m.spec.Env["TASK_ID"]) + "out.xml"
	if body != "" {
		h.outputs.buckets[port.Uploads][key] = body
	}
	return contract.Callback{
		Status: contract.StatusSuccess, OutputKey: key, OutputFileName: "out.xml", OutputFileSize: &size,
	}
}

// completed posts a run and completes it with an output.
func (h *fixture) completed() (task string) {
	h.Helper()
	task = h.post()
	h.ok(h.report(h.runner.last(), h.upload(h.runner.last(), "<out/>", 6)))
	h.step()
	h.wantState(task, run.Completed)
	return task
}

// download reads the output of a task.
func (h *fixture) download(task string) (string, error) {
	h.Helper()
	d, err := h.service.Output(h.Context(), client, task)
	if err != nil {
		return "", err
	}
	body, err := h.service.Open(h.Context(), d, port.Span{})
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(body)
	h.ok(errors.Join(err, body.Close()))
	return string(text), h.service.Downloaded(h.Context(), d)
}

// TestOnlyVerifiedOutputIsServed uploads a correct output and one with each defect.
//
// Rule 14 of shared/README.md.
func TestOnlyVerifiedOutputIsServed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		size int64
		// after changes the upload after its first Head.
		after  func(h *fixture, uploads map[string]string, key string)
		want   run.State
		events string
		serve  string
	}{
		"as reported": {"<out/>", 6, nil, run.Completed, "attempt_ended completed", "<out/>"},
		"missing":     {"", 6, nil, run.Retrying, "retry_scheduled:OUTPUT_MISSING", ""},
		"too short":   {"<out>", 6, nil, run.Retrying, "retry_scheduled:OUTPUT_MISMATCH", ""},
		"too long":    {"<out />", 6, nil, run.Retrying, "retry_scheduled:OUTPUT_MISMATCH", ""},
		"changed before it is accepted": {"<out/>", 6, func(_ *fixture, uploads map[string]string, key string) {
			uploads[key] = "<new/>"
		}, run.Completed, "attempt_ended completed", "<new/>"},
		"changed to another size": {"<out/>", 6, func(_ *fixture, uploads map[string]string, key string) {
			uploads[key] = "<longer/>"
		}, run.Retrying, "retry_scheduled:OUTPUT_MISMATCH", ""},
		"deleted before it is accepted": {"<out/>", 6, func(_ *fixture, uploads map[string]string, key string) {
			delete(uploads, key)
		}, run.Retrying, "retry_scheduled:OUTPUT_MISSING", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.Policy.Retry.InitialDelay = time.Minute })
			task := h.post()
			body := h.upload(h.runner.last(), test.body, test.size)
			h.outputs.after = func() {
				if test.after != nil {
					test.after(h, h.outputs.buckets[port.Uploads], body.OutputKey)
				}
			}
			h.ok(h.report(h.runner.last(), body))
			h.step()
			h.advance(5 * time.Second)
			h.wantState(task, test.want)
			h.wantEvents(task, test.events)
			if text, err := h.download(task); text != test.serve || (err == nil) != (test.serve != "") {
				t.Errorf("got output %q (%v), want %q", text, err, test.serve)
			}
			if len(h.outputs.buckets[port.Uploads]) != 0 {
				t.Errorf("got uploads %v, want an empty bucket", h.outputs.buckets[port.Uploads])
			}
		})
	}
}

// TestAcceptedOutputCannotBeOverwritten uploads again after the run ended.
//
// Rule 14 of shared/README.md.
func TestAcceptedOutputCannotBeOverwritten(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.completed()
	h.upload(h.runner.last(), "<evil/>", 7)
	if text, err := h.download(task); err != nil || text != "<out/>" {
		t.Errorf("got output %q (%v), want %q", text, err, "<out/>")
	}
}

func TestOutputExpires(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		play func(h *fixture, task string)
		// served is an age at which the output is served, gone one at which it is not.
		served, gone time.Duration
	}{
		"by its retention": {func(*fixture, string) {}, 24*time.Hour - time.Second, 24*time.Hour + time.Second},
		"after a download": {func(h *fixture, task string) { _, err := h.download(task); h.ok(err) }, time.Hour - time.Second, time.Hour + time.Second},
		"on request with a lost deletion": {func(h *fixture, task string) {
			h.outputs.lost = 1
			h.ok(h.service.DeleteOutput(h.Context(), client, task))
			h.ok(h.service.DeleteOutput(h.Context(), client, task))
			if len(h.outputs.buckets[port.Accepted]) != 1 {
				h.Error("got a deleted output, want the deletion lost")
			}
		}, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.completed()
			test.play(h, task)
			if test.served > 0 {
				h.advance(test.served)
				h.sweep()
				if d, err := h.service.Output(h.Context(), client, task); err != nil || d.Output.Size != 6 || len(h.outputs.buckets[port.Accepted]) != 1 {
					t.Errorf("got output %+v (%v) before its expiry, want 6 bytes", d.Output, err)
				}
			}
			h.advance(test.gone - test.served)
			want := fault.OutputExpired
			if test.served == 0 {
				want = fault.OutputDeleted
			}
			if _, err := h.service.Output(h.Context(), client, task); !fault.Is(err, want) {
				t.Errorf("got %v after the expiry and before the sweep, want %s", err, want)
			}
			h.sweep()
			h.sweep()
			h.wantEvents(task, "output_deleted")
			if r := h.wantState(task, run.Completed); len(h.outputs.buckets[port.Accepted]) != 0 || r.Output.DeletedAt.IsZero() {
				t.Errorf("got outputs %v and deletion at %v, want an empty bucket and a time", h.outputs.buckets[port.Accepted], r.Output.DeletedAt)
			}
			if _, err := h.service.Output(h.Context(), client, task); !fault.Is(err, want) {
				t.Errorf("got %v after the deletion, want %s", err, want)
			}
		})
	}
}

func TestExpiredRecordIsPurged(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.completed()
	ref := h.record(task).Ref()
	h.advance(48*time.Hour - time.Second)
	h.sweep()
	h.wantState(task, run.Completed)
	h.advance(2 * time.Second)
	if _, err := h.service.Task(h.Context(), client, task); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for an expired record, want %s", err, fault.NotFound)
	}
	h.sweep()
	if _, err := h.store.Load(h.Context(), ref); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v after the sweep, want %v", err, port.ErrNotFound)
	}
	if left, err := h.store.Purge(h.Context(), h.clock.now, 10); left != 0 || err != nil {
		t.Errorf("got %d records to purge (%v) after the sweep, want 0", left, err)
	}
	if events, err := h.store.Events(h.Context(), ref, 0, 10); len(events) != 0 {
		t.Errorf("got %d events (%v) after the sweep, want 0", len(events), err)
	}
}

// TestDigestIsVerified completes runs with digests of their outputs. The limit of a read
// is 6 bytes.
func TestDigestIsVerified(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body, digest string
		// stored is the digest that the object store reports.
		stored string
		want   run.State
		event  string
		// shown is the digest of the accepted output.
		shown string
	}{
		"correct":                      {"<out/>", digest("<out/>"), "", run.Completed, "completed", digest("<out/>")},
		"wrong":                        {"<out/>", digest("<OUT/>"), "", run.Retrying, "retry_scheduled:OUTPUT_MISMATCH", ""},
		"not reported":                 {"<out/>", "", "", run.Completed, "completed", ""},
		"too large for a read":         {"<large/>", digest("<other/>"), "", run.Completed, "completed", ""},
		"correct for the object store": {"<large/>", digest("<large/>"), digest("<large/>"), run.Completed, "completed", digest("<large/>")},
		"another of the object store":  {"<large/>", digest("<other/>"), digest("<large/>"), run.Retrying, "retry_scheduled:OUTPUT_MISMATCH", ""},
		"not reported but stored":      {"<large/>", "", digest("<large/>"), run.Completed, "completed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.Policy.Retry.InitialDelay, c.DigestRead = time.Minute, 6 })
			task := h.post()
			w := h.worker(h.runner.last())
			h.ok(w.started(false))
			h.outputs.digest = test.stored
			size := int64(len(test.body))
			named := h.upload(h.runner.last(), test.body, size)
			_, _, err := h.service.Completed(t.Context(), w.bearer(), contract.TaskCompleted{
				Attempt: 1, WorkerID: w.id, Outcome: contract.OutcomeSucceeded,
				Output: &contract.TaskOutput{OutputPath: named.OutputKey, FileName: "out.xml", ByteSize: &size, Digest: test.digest},
			})
			h.ok(err)
			h.step()
			h.advance(5 * time.Second)
			h.wantState(task, test.want)
			h.wantEvents(task, test.event)
			shown := ""
			if output := h.record(task).Output; output != nil {
				shown = output.Digest
			}
			if shown != test.shown || (test.want == run.Retrying) != (len(h.outputs.buckets[port.Accepted]) == 0) {
				t.Errorf("got digest %q and accepted objects %v, want %q", shown, h.outputs.buckets[port.Accepted], test.shown)
			}
		})
	}
}

func digest(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
