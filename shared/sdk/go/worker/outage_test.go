package worker_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
)

// TestResultSurvivesOutage makes the control plane fail in every way for ten minutes.
// Heartbeats continue, and the result is delivered unchanged.
func TestResultSurvivesOutage(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		start := time.Now()
		away := func(n int) *http.Response {
			if since := time.Since(start); since < time.Minute || since > 11*time.Minute {
				return reply(http.StatusOK, "{}")
			}
			switch n % 5 {
			case 0:
				return nil
			case 1:
				return reply(http.StatusBadGateway, "<html>")
			case 2:
				return reply(http.StatusUnauthorized, "")
			case 3:
				return reply(http.StatusTooManyRequests, "", "Retry-After", "7")
			}
			return reply(hang, "")
		}
		s.plane.on("heartbeat", away)
		s.plane.on("completed", away)
		if err := s.run(lasting(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		for _, heartbeat := range s.plane.of("heartbeat") {
			if now := heartbeat.at.Sub(start); now-last > 62*time.Second {
				t.Errorf("got no heartbeat from %s to %s, want one at least every 62 s", last, now)
			}
			last = heartbeat.at.Sub(start)
		}
		tries := s.plane.of("completed")
		if took := tries[len(tries)-1].at.Sub(start); took < 11*time.Minute || took > 12*time.Minute {
			t.Errorf("got the result after %s, want 11 to 12 minutes", took)
		}
		for _, try := range tries {
			if string(try.body) != string(tries[0].body) {
				t.Errorf("got %s, want the first body %s", try.body, tries[0].body)
			}
		}
	})
}

// TestCompletedIsRepeatedAfterLostAnswer loses the response to an accepted result. Heartbeats
// get 410 in the meantime.
func TestCompletedIsRepeatedAfterLostAnswer(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("completed", func(n int) *http.Response {
			if n < 6 {
				return reply(hang, "")
			}
			return reply(http.StatusOK, `{"finalState":"SUCCEEDED"}`)
		})
		s.plane.on("heartbeat", always(http.StatusGone, ""))
		if err := s.run(lasting(time.Second)); err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
}

func TestResultIsRetriedUntilTheDeadline(t *testing.T) {
	t.Parallel()
	for name, deadline := range map[string]time.Duration{"no deadline": 0, "deadline": 20 * time.Minute, "past deadline": time.Second} {
		simulate(t, func(s *fixture) {
			want := time.Hour
			if deadline > 0 {
				s.assignment.Envelope.Deadline, want = time.Now().Add(deadline), max(deadline, time.Minute)
			}
			s.plane.on("completed", func(int) *http.Response { return nil })
			start := time.Now()
			err := s.run(lasting(0))
			if took := time.Since(start); !errors.Is(err, worker.ErrUndelivered) || took > want || took < want-31*time.Second {
				t.Errorf("%s: got %v after %s, want ErrUndelivered after %s", name, err, took, want)
			}
		})
	}
}

func TestRefusedResultIsNotRepeated(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusConflict: worker.ErrMismatch, http.StatusGone: worker.ErrExpired,
		http.StatusBadRequest: worker.ErrUndelivered, http.StatusTemporaryRedirect: worker.ErrUndelivered,
	} {
		simulate(t, func(s *fixture) {
			s.plane.on("completed", func(int) *http.Response { return reply(status, "{}", "Location", "http://other.test/") })
			if err := s.run(lasting(0)); !errors.Is(err, want) || !errors.Is(err, worker.ErrUndelivered) || len(s.plane.of("completed")) != 1 {
				t.Errorf("%d: got %v after %d calls, want %v after 1", status, err, len(s.plane.of("completed")), want)
			}
		})
	}
}
