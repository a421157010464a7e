package worker_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const followedAnswer = `{"acknowledged":true,"shouldCancel":false,"followed":true,"serverTime":"2025-01-15T10:00:01Z"}`

// sent is the output that the control plane received.
type sent struct {
	text  map[string]string
	calls int
	ages  []time.Duration // of the calls
}

// received checks the sequences and returns the output. Calls for which answered is false had
// no response and are repeated.
func (s *fixture) received(answered func(n int) bool) sent {
	s.t.Helper()
	got := sent{text: map[string]string{}}
	next, last := 1, ""
	for n, c := range s.plane.of("logs") {
		body := as[contract.TaskLog](s.t, c)
		aged := *body.AgeMs
		body.AgeMs = nil
		same, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		if *body.Sequence != next || body.Attempt != 2 || last != "" && last != string(same) {
			s.t.Fatalf("call %d: got sequence %d of attempt %d, want %d of 2 and the same again if it had no answer", n, *body.Sequence, body.Attempt, next)
		}
		got.calls++
		got.ages = append(got.ages, time.Duration(aged)*time.Millisecond)
		if last = string(same); !answered(n) {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(*body.Data)
		if err != nil || len(*body.Data) > 32<<10+200 {
			s.t.Fatalf("call %d: got %d bytes of data, %v, want base64 of at most 32 KiB", n, len(*body.Data), err)
		}
		got.text[body.Stream] += string(data)
		next, last = next+1, ""
	}
	return got
}

func always200(int) bool { return true }

// TestOutputIsSentInTime writes a line each second.
func TestOutputIsSentInTime(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer string
		want   []int
	}{
		"no follower": {`{"acknowledged":true,"shouldCancel":false,"followed":false}`, []int{2, 32, 62}},
		"follower":    {followedAnswer, []int{2, 4, 6, 8, 10, 12, 14}},
	} {
		simulate(t, func(s *fixture) {
			s.options.SendsOutput = true
			s.plane.on("logs", always(http.StatusOK, row.answer))
			start := time.Now()
			err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
				for i := range 90 { // the first line is sent at once, the others at the intervals
					if i == 1 {
						<-time.After(500 * time.Millisecond)
					}
					fmt.Fprintf(task.Stdout(), "line %d\n", i)
					<-time.After(time.Second)
				}
				return worker.Result{}, context.Cause(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range row.want {
				if got := s.plane.of("logs")[i].at.Sub(start); got != time.Duration(want)*time.Second {
					t.Errorf("%s: got call %d after %s, want %d s", name, i, got, want)
				}
			}
			if !as[contract.TaskStarted](t, s.plane.one(t, "started")).SendsOutput {
				t.Error("got no sendsOutput in started")
			}
			got := s.received(always200)
			if n := strings.Count(got.text["stdout"], "\n"); n != 90 || !strings.HasSuffix(got.text["stdout"], "line 89\n") {
				t.Errorf("%s: got %d lines, want 90", name, n)
			}
			if end := s.plane.one(t, "completed").at; s.plane.of("logs")[got.calls-1].at.After(end) {
				t.Error("got output after completed")
			}
		})
	}
}

// TestOutputSurvivesLostAnswers repeats unanswered calls.
func TestOutputSurvivesLostAnswers(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.options.SendsOutput = true
		lost := func(n int) bool { return n%3 != 2 }
		s.plane.on("logs", func(n int) *http.Response {
			switch {
			case lost(n):
				return reply(http.StatusOK, followedAnswer)
			case n%2 == 0:
				return reply(http.StatusServiceUnavailable, `{}`, "Retry-After", "1")
			}
			return nil
		})
		var want strings.Builder
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			for i := range 200 {
				text := fmt.Sprintf("line %d\n", i)
				want.WriteString(text)
				_, _ = task.Stderr().Write([]byte(text))
				<-time.After(300 * time.Millisecond)
			}
			return worker.Result{}, context.Cause(ctx)
		})
		if got := s.received(lost); err != nil || got.text["stderr"] != want.String() || got.calls < 10 {
			t.Errorf("got %d bytes in %d calls, %v, want %d bytes", len(got.text["stderr"]), got.calls, err, want.Len())
		}
	})
}

var dropped = regexp.MustCompile(`\n\[(\d+) bytes are cut out here\]\n`)

// TestOutputOfAnOutageIsCounted writes 20 MB while the control plane is unavailable.
func TestOutputOfAnOutageIsCounted(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.options.SendsOutput = true
		start := time.Now()
		up := func(at time.Time) bool { return at.Sub(start) > 10*time.Minute }
		var answered []bool
		s.plane.on("logs", func(int) *http.Response {
			answered = append(answered, up(time.Now()))
			if !up(time.Now()) {
				return nil
			}
			return reply(http.StatusOK, followedAnswer)
		})
		line := []byte(strings.Repeat("x", 1023) + "\n")
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			before := time.Now()
			for range 20 << 10 {
				_, _ = task.Stdout().Write(line)
			}
			if waited := time.Since(before); waited != 0 {
				t.Errorf("got writes that waited %s, want none", waited)
			}
			return lasting(11*time.Minute)(ctx, task)
		})
		if err != nil {
			t.Fatal(err)
		}
		text := s.received(func(n int) bool { return answered[n] }).text["stdout"]
		total, missing := int64(len(text)), int64(0)
		for _, mark := range dropped.FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseInt(mark[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			total, missing = total-int64(len(mark[0]))+n, missing+n
		}
		if total != 20<<20 || missing < 18<<20 || len(text) < 500<<10 {
			t.Errorf("got %d bytes with %d dropped that make %d, want 20 MiB and at least 500 KiB received", len(text), missing, total)
		}
	})
}

// TestUndeliveredOutputIsReported ends a task while the control plane refuses output.
func TestUndeliveredOutputIsReported(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer func(int) *http.Response
		upload bool
		calls  int
		lost   any
	}{
		"an older control plane": {always(http.StatusNotFound, `{"code":"NOT_FOUND"}`), false, 1, 6.0},
		"uploaded instead":       {always(http.StatusNotFound, `{"code":"NOT_FOUND"}`), true, 1, nil},
		"other output":           {always(http.StatusConflict, `{"error":"sequence_conflict"}`), false, 1, 6.0},
		"an outage":              {func(int) *http.Response { return nil }, false, 0, 6.0},
	} {
		simulate(t, func(s *fixture) {
			s.options.SendsOutput = true
			s.plane.on("logs", row.answer)
			var took time.Duration
			err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
				_, _ = task.Stdout().Write([]byte("hello\n"))
				_, _ = lasting(10*time.Second)(ctx, task) //nolint:errcheck // not cancelled
				before := time.Now()
				err := task.FlushOutput(ctx)
				if took = time.Since(before); !errors.Is(err, worker.ErrOutputNotSent) {
					t.Errorf("%s: got %v, want ErrOutputNotSent", name, err)
				}
				if row.upload {
					return worker.Result{}, task.UploadLog(ctx, strings.NewReader("hello\n"), 6)
				}
				return worker.Result{}, nil
			})
			var metrics map[string]any
			if err != nil || json.Unmarshal(s.completed().Metrics, &metrics) != nil || metrics["outputBytesLost"] != row.lost {
				t.Errorf("%s: got %v, metrics %v, want %v lost bytes", name, err, metrics, row.lost)
			}
			if n := len(s.plane.of("logs")); row.calls > 0 && n != row.calls || took > 30*time.Second {
				t.Errorf("%s: got %d calls and a flush of %s, want %d and at most 30 s", name, n, took, row.calls)
			}
		})
	}
}

func TestAnswerToOutputEndsTheWork(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer func(int) *http.Response
		cause  error
		ends   int // calls of completed
	}{
		"cancel request": {always(http.StatusOK, `{"acknowledged":true,"shouldCancel":true,"cancelReason":"too slow","followed":false}`), worker.ErrCancelled, 1},
		"expired":        {always(http.StatusGone, `{"error":"task_expired"}`), worker.ErrExpired, 0},
		"other attempt":  {always(http.StatusConflict, `{"error":"attempt_mismatch"}`), worker.ErrMismatch, 0},
	} {
		simulate(t, func(s *fixture) {
			s.options.SendsOutput = true
			s.plane.on("logs", row.answer)
			err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
				_, _ = task.Stdout().Write([]byte("hello\n"))
				return lasting(20*time.Second)(ctx, task)
			})
			if n := len(s.plane.of("completed")); !errors.Is(err, row.cause) || n != row.ends {
				t.Errorf("%s: got %v and %d completed, want %v and %d", name, err, n, row.cause, row.ends)
			}
			if row.ends > 0 && s.completed().Outcome != contract.OutcomeCancelled {
				t.Errorf("%s: got %+v, want CANCELLED", name, s.completed())
			}
		})
	}
}

// TestOutputTakesFewCalls checks that output that alternates between the streams needs few
// calls. A worker that never writes makes no call.
func TestOutputTakesFewCalls(t *testing.T) {
	t.Parallel()
	for lines, most := range map[int]int{0: 0, 1: 2, 3000: 24} {
		simulate(t, func(s *fixture) {
			s.options.SendsOutput = true
			err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
				for i := range lines {
					fmt.Fprintf(task.Stdout(), "out %d\n", i)
					fmt.Fprintf(task.Stderr(), "err %d\n", i)
				}
				return lasting(time.Minute)(ctx, task)
			})
			got := s.received(always200)
			if err != nil || got.calls > most || strings.Count(got.text["stdout"], "\n") != lines || strings.Count(got.text["stderr"], "\n") != lines {
				t.Errorf("got %d calls for %d lines, %v, want at most %d", got.calls, lines, err, most)
			}
		})
	}
}

// TestOutputIsNotSentWithoutTheOption checks that without the option no output is announced or
// sent.
func TestOutputIsNotSentWithoutTheOption(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			_, _ = task.Stdout().Write([]byte("hello\n"))
			return lasting(time.Minute)(ctx, task)
		})
		if err != nil || len(s.plane.of("logs")) != 0 || as[contract.TaskStarted](t, s.plane.one(t, "started")).SendsOutput {
			t.Errorf("got %d calls, %v, want none", len(s.plane.of("logs")), err)
		}
	})
}

// TestOutputHasItsAge loses the answer of the second call.
func TestOutputHasItsAge(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.options.SendsOutput = true
		answered := func(n int) bool { return n != 1 }
		s.plane.on("logs", func(n int) *http.Response {
			if answered(n) {
				return reply(http.StatusOK, followedAnswer)
			}
			return reply(http.StatusServiceUnavailable, "")
		})
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			fmt.Fprintln(task.Stdout(), "one")
			<-time.After(10 * time.Second)
			for range 2 {
				fmt.Fprintln(task.Stdout(), "more")
				<-time.After(50 * time.Millisecond)
			}
			<-time.After(time.Minute)
			return worker.Result{}, context.Cause(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		ages := s.received(answered).ages
		if len(ages) != 3 || ages[0] != 2001*time.Millisecond || ages[1] != 101*time.Millisecond || ages[2] <= ages[1] {
			t.Errorf("got ages %v, want those of the first line after 2 s, of the second after 100 ms, and a longer one of the repeated call", ages)
		}
	})
}
