package worker_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/worker"
)

// TestAResultOutlastsAnOutage: the control plane is away for ten minutes, in
// every way; the result arrives, once, and the worker was never still.
func TestAResultOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		begun := time.Now()
		away := func(n int) *http.Response {
			if since := time.Since(begun); since < time.Minute || since > 11*time.Minute {
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
			if now := heartbeat.at.Sub(begun); now-last > 62*time.Second {
				t.Errorf("no heartbeat from %s to %s", last, now)
			}
			last = heartbeat.at.Sub(begun)
		}
		tries := s.plane.of("completed")
		if took := tries[len(tries)-1].at.Sub(begun); took < 11*time.Minute || took > 12*time.Minute {
			t.Errorf("the result arrived after %s", took)
		}
		for _, try := range tries {
			if string(try.body) != string(tries[0].body) {
				t.Error("the result changed on the way")
			}
		}
	})
}

// TestAnAcceptedResultWhoseAnswerWasLostIsSentAgain: heartbeats get 410 by then,
// and that does not keep the worker from asking.
func TestAnAcceptedResultWhoseAnswerWasLostIsSentAgain(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("completed", func(n int) *http.Response {
			if n < 6 {
				return reply(hang, "")
			}
			return reply(http.StatusOK, `{"finalState":"SUCCEEDED"}`)
		})
		s.plane.on("heartbeat", always(http.StatusGone, ""))
		if err := s.run(lasting(time.Second)); err != nil {
			t.Error(err)
		}
	})
}

func TestAResultIsGivenUpAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, deadline := range map[string]time.Duration{"no deadline": 0, "deadline": 20 * time.Minute, "past deadline": time.Second} {
		play(t, func(s *stage) {
			want := time.Hour
			if deadline > 0 {
				s.assignment.Envelope.Deadline, want = time.Now().Add(deadline), max(deadline, time.Minute)
			}
			s.plane.on("completed", func(int) *http.Response { return nil })
			begun := time.Now()
			err := s.run(lasting(0))
			if took := time.Since(begun); !errors.Is(err, worker.ErrUndelivered) || took > want || took < want-31*time.Second {
				t.Errorf("%s: Run gives %v after %s, want %s", name, err, took, want)
			}
		})
	}
}

func TestARefusedResultIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusConflict: worker.ErrMismatch, http.StatusGone: worker.ErrExpired,
		http.StatusBadRequest: worker.ErrUndelivered, http.StatusTemporaryRedirect: worker.ErrUndelivered,
	} {
		play(t, func(s *stage) {
			s.plane.on("completed", func(int) *http.Response { return reply(status, "{}", "Location", "http://other.test/") })
			if err := s.run(lasting(0)); !errors.Is(err, want) || !errors.Is(err, worker.ErrUndelivered) || len(s.plane.of("completed")) != 1 {
				t.Errorf("%d: Run gives %v", status, err)
			}
		})
	}
}
