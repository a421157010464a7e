package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const renewal = `{"acknowledged":true,"taskToken":"` + secondToken + `","tokenExpiresAt":"2025-01-15T12:00:00Z",
	"output":{"url":"http://bucket.test/new-output?secret","key":"exports/task-1/o.xml"},"log":{"url":"http://bucket.test/new-log?secret","key":"l"}}`

func digest(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func upload(text string) worker.Func {
	return func(ctx context.Context, task *worker.Task) (worker.Result, error) {
		return worker.Result{}, task.UploadOutput(ctx, strings.NewReader(text), int64(len(text)), "application/xml")
	}
}

func TestUploadIsTheOutput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"<mods/>", ""} {
		simulate(t, func(s *fixture) {
			s.plane.on("o.xml", func(n int) *http.Response {
				if n == 0 {
					return reply(http.StatusServiceUnavailable, "")
				}
				return reply(http.StatusOK, "")
			})
			if err := s.run(upload(text)); err != nil {
				t.Fatal(err)
			}
			puts := s.plane.of("o.xml")
			last := puts[len(puts)-1]
			if len(puts) != 2 || string(last.body) != text || last.token != "" || last.header.Get("Content-Type") != "application/xml" || last.header.Get("X-Amz-Acl") != "private" {
				t.Errorf("got %d uploads, the last %+v, want 2 of %q without a token", len(puts), last, text)
			}
			if o := s.completed().Output; o.OutputPath != "exports/task-1/o.xml" || *o.ByteSize != int64(len(text)) || o.Digest != digest(text) {
				t.Errorf("got output %+v, want %d bytes at the envelope's key with digest %s", o, len(text), digest(text))
			}
		})
	}
}

// TestRenewedTokenAndURLsAreUsed checks that heartbeats, uploads and completed use the renewed
// token and URLs.
func TestRenewedTokenAndURLsAreUsed(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("heartbeat", always(http.StatusOK, renewal))
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			if _, err := lasting(70*time.Second)(ctx, task); err != nil {
				return worker.Result{}, err
			}
			if err := task.UploadLog(ctx, bytes.NewReader([]byte("line\n")), 5); err != nil {
				return worker.Result{}, err
			}
			_, err := upload("x")(ctx, task)
			return worker.Result{Output: &contract.TaskOutput{FileName: "mine.xml"}}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		heartbeats := s.plane.of("heartbeat")
		if heartbeats[0].token != firstToken || heartbeats[1].token != secondToken || s.plane.one(t, "completed").token != secondToken {
			t.Errorf("got tokens %q, then %q, want %q, then %q", heartbeats[0].token, heartbeats[1].token, firstToken, secondToken)
		}
		if string(s.plane.one(t, "new-log").body) != "line\n" || len(s.plane.of("new-output")) != 1 {
			t.Errorf("got %d uploads to the renewed URL, want 1", len(s.plane.of("new-output")))
		}
		if o := s.completed().Output; o.FileName != "mine.xml" || o.OutputPath != "exports/task-1/o.xml" || *o.ByteSize != 1 {
			t.Errorf("got output %+v, want mine.xml of 1 byte", o)
		}
	})
}

// TestExpiredUploadURLIsRenewed checks that a refused upload causes a heartbeat, whose response
// contains a new URL.
func TestExpiredUploadURLIsRenewed(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("o.xml", always(http.StatusForbidden, ""))
		s.plane.on("heartbeat", always(http.StatusOK, renewal))
		if err := s.run(upload("x")); err != nil || len(s.plane.of("new-output")) != 1 {
			t.Errorf("got %v and %d uploads to the new URL, want 1", err, len(s.plane.of("new-output")))
		}
	})
}

func TestRefusedUploadFailsTheTask(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("o.xml", always(http.StatusForbidden, ""))
		if err := s.run(upload("x")); err == nil || len(s.plane.of("o.xml")) != 4 {
			t.Errorf("got %v after %d uploads, want an error after 4", err, len(s.plane.of("o.xml")))
		}
		if e := s.completed().Error; e.Category != "INFRASTRUCTURE" || !*e.Retryable {
			t.Errorf("got error %+v, want INFRASTRUCTURE, retryable", e)
		}
	})
}

func TestStalledUploadIsRetried(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("o.xml", func(n int) *http.Response {
			if n == 0 {
				return reply(hang, "")
			}
			return reply(http.StatusOK, "")
		})
		start := time.Now()
		if err := s.run(upload("x")); err != nil || time.Since(start) > 62*time.Second {
			t.Errorf("got %v after %s, want no error after at most 62s", err, time.Since(start))
		}
	})
}

func TestWorkerWithoutEnvelopeMakesOneCallback(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"success": nil, "error": errors.New("Failed to fetch manifest")} {
		simulate(t, func(s *fixture) {
			s.assignment = worker.Assignment{TaskID: "task-1", BatchID: "single", CallbackURL: "http://plane.test/callback?token=secret"}
			s.plane.on("callback", func(n int) *http.Response {
				if n < 3 {
					return nil
				}
				return reply(http.StatusOK, `{"received":true}`)
			})
			err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
				if err := task.UploadOutput(ctx, strings.NewReader(""), 0, ""); !errors.Is(err, worker.ErrNoUpload) {
					t.Errorf("got %v from an upload, want ErrNoUpload", err)
				}
				<-time.After(5 * time.Minute)
				return worker.Result{
					Output:  &contract.TaskOutput{OutputPath: "exports/task-1/a.xml", ByteSize: new(int64(7))},
					Metrics: map[string]int{"entities_exported": 1},
				}, failure
			})
			if !errors.Is(err, failure) {
				t.Errorf("%s: got %v, want %v", name, err, failure)
			}
			calls := s.plane.of("callback")
			got := as[contract.Callback](t, calls[len(calls)-1])
			want := contract.Callback{TaskID: "task-1", BatchID: "single", Status: name}
			if got.TaskID != want.TaskID || got.BatchID != want.BatchID || got.Status != want.Status || len(s.plane.of("started"))+len(s.plane.of("heartbeat")) > 0 {
				t.Errorf("%s: got callback %+v, want %+v and no other call", name, got, want)
			}
			if failure == nil && (got.OutputKey != "exports/task-1/a.xml" || got.OutputFileName != "a.xml" || *got.OutputFileSize != 7 || string(got.Metrics) != `{"entities_exported":1}`) {
				t.Errorf("got callback %+v, want the output and the metrics", got)
			}
			if failure != nil && (got.Error != failure.Error() || got.OutputKey != "") {
				t.Errorf("got callback %+v, want the error and no output", got)
			}
		})
	}
}
