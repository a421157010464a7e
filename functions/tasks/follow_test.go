package tasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// stream opens a followed log. Its responses are not checked against the OpenAPI document,
// because that check reads them to their end.
func (s *sender) stream(t *testing.T, query string, lines bool) (*bufio.Reader, http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.stage.URL+s.path(query), nil)
	if err != nil {
		t.Fatal(err)
	}
	if lines {
		request.Header.Set("Accept", "application/x-ndjson")
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		t.Fatalf("%s: got %d %s, %v, want 200", query, response.StatusCode, text, err)
	}
	return bufio.NewReader(response.Body), response.Header
}

func wantNext(t *testing.T, from *bufio.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func wantEnd(t *testing.T, from io.Reader, want string) {
	t.Helper()
	if got, err := io.ReadAll(from); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q and the end", got, err, want)
	}
}

// line reads a line of JSON.
func line(t *testing.T, from *bufio.Reader) contract.LogLine {
	t.Helper()
	text, err := from.ReadBytes('\n')
	var l contract.LogLine
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		t.Fatalf("got %q: %v", text, err)
	}
	return l
}

func wantLine(t *testing.T, from *bufio.Reader, attempt int, stream, data string, next int64, ended bool) {
	t.Helper()
	if l := line(t, from); l.Attempt != attempt || l.Stream != stream || string(l.Data) != data || l.Next != next || l.Ended != ended {
		t.Fatalf("got %+v (%q), want attempt %d, %s %q, next %d, ended %t", l, l.Data, attempt, stream, data, next, ended)
	}
}

// tick advances the clock one second at a time until the test ends, so that followers read the
// output of machines.
func (s *sender) tick(t *testing.T) {
	t.Helper()
	done, stopped := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(2 * time.Millisecond)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ticker.C:
				s.stage.Clock.Advance(time.Second)
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { ticker.Stop(); close(done); <-stopped })
}

// TestFollowedLogGrows reads each chunk while the run continues, until it ends.
func TestFollowedLogGrows(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	all, header := s.stream(t, "?follow=true", false)
	errs, _ := s.stream(t, "?follow=true&stream=stderr", false)
	if header.Get("X-Attempt") != "1" || header.Get("X-Log-Ended") != "false" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("got headers %v, want attempt 1 that has not ended", header)
	}
	s.send(t, "stdout", "one\n")
	wantNext(t, all, "one\n")
	s.send(t, "stderr", "two\n")
	wantNext(t, all, "two\n")
	wantNext(t, errs, "two\n")
	later, _ := s.stream(t, "?follow=true&attempt=1&offset=2", false)
	wantNext(t, later, "e\ntwo\n")
	s.send(t, "stdout", "three") // without a new line; the last letter may begin a secret
	s.end(t)
	wantEnd(t, all, "three")
	wantEnd(t, errs, "")
	wantEnd(t, later, "three")
	ended, header := s.stream(t, "?follow=true&attempt=1&offset=8", false)
	if wantEnd(t, ended, "three"); header.Get("X-Log-Ended") != "true" {
		t.Errorf("got X-Log-Ended %q after the end, want true", header.Get("X-Log-Ended"))
	}
}

// TestFollowContinuesWithTheNextAttempt follows from before the first attempt.
func TestFollowContinuesWithTheNextAttempt(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	s.task = s.stage.Accept(t)
	lines, _ := s.stream(t, "?follow=true", true)
	s.begin(t)
	s.send(t, "stdout", "one\n")
	wantLine(t, lines, 1, "stdout", "one\n", 4, false)
	s.send(t, "stderr", "two\n")
	wantLine(t, lines, 1, "stderr", "two\n", 8, false)
	s.stage.LoseMachine(t, s.task)
	s.stage.Clock.Advance(time.Minute)
	s.begin(t)
	s.send(t, "stdout", "again\n")
	wantLine(t, lines, 2, "stdout", "again\n", 6, false)
	s.end(t)
	wantLine(t, lines, 2, "", "", 6, true)
	wantEnd(t, lines, "")
	again, _ := s.stream(t, "?follow=true&attempt=1&offset=4", true)
	wantLine(t, again, 1, "stderr", "two\n", 8, false)
	wantLine(t, again, 2, "stdout", "again\n", 6, false)
	wantLine(t, again, 2, "", "", 6, true)
}

// TestMachineLogIsFollowed checks that the log of a worker without the SDK is read from its
// machine.
func TestMachineLogIsFollowed(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	s := &sender{stage: stage, task: stage.Accept(t)}
	stage.Start(t, s.task)
	lines, _ := s.stream(t, "?follow=true", true)
	stage.Write(t, s.task, "one\n")
	s.tick(t)
	wantLine(t, lines, 1, "stdout", "one\n", 4, false)
	stage.Write(t, s.task, "one\ntwo\n")
	wantLine(t, lines, 1, "stdout", "two\n", 8, false)
	stage.Write(t, s.task, "one\ntwo\nthree\n")
	stage.Report(t, s.task, contract.Callback{Status: contract.StatusError, Error: "no manifest"})
	stage.Settle(t, s.task)
	if state := stage.Run(t, s.task).State; state != run.Failed {
		t.Fatalf("got state %s, want %s", state, run.Failed)
	}
	wantLine(t, lines, 1, "stdout", "three\n", 14, false)
	wantLine(t, lines, 1, "", "", 14, true)
}

// TestFollowerAwaitsTheWorker checks a follower that connects before the worker's first call.
// It receives the streams of the worker, not the single stream of its machine.
func TestFollowerAwaitsTheWorker(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	s.task = s.stage.Accept(t)
	s.stage.Start(t, s.task)
	s.stage.Write(t, s.task, "two\none\n")
	out, _ := s.stream(t, "?follow=true&stream=stdout", false)
	all, _ := s.stream(t, "?follow=true", true)
	s.begin(t)
	s.send(t, "stdout", "one\n")
	s.send(t, "stderr", "two\n")
	s.end(t)
	wantEnd(t, out, "one\n")
	wantLine(t, all, 1, "stdout", "one\n", 4, false)
	wantLine(t, all, 1, "stderr", "two\n", 8, false)
}

// TestAnswerReportsFollowers checks that responses to the worker report a follower until some
// time after the client disconnects.
func TestAnswerReportsFollowers(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	if s.send(t, "stdout", "one\n").Followed {
		t.Error("got followed without a client")
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.stage.URL+s.path("?follow=true"), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	from := bufio.NewReader(response.Body)
	wantNext(t, from, "one\n")
	followed := func() bool {
		t.Helper()
		text := fmt.Sprintf("chunk %d\n", s.next)
		answer := s.send(t, "stdout", text)
		wantNext(t, from, text)
		return answer.Followed
	}
	for i := 0; !followed(); i++ {
		if i == 100 {
			t.Fatal("got not followed after 100 chunks that the client read")
		}
	}
	for range 20 { // the client renews its mark
		s.stage.Clock.Advance(5 * time.Second)
		if !followed() {
			t.Fatal("got not followed although the client reads")
		}
	}
	leave()
	_ = response.Body.Close()
	for i := range 50 { // the server detects it soon
		s.stage.Clock.Advance(time.Minute)
		if !s.send(t, "stdout", "z\n").Followed {
			return
		}
		if i == 49 {
			t.Error("got followed for 50 minutes after the client left")
		}
	}
}

func TestFollowRefusals(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	for query, want := range map[string]int{
		"?follow=yes": 400, "?follow=true&offset=-1": 400, "?follow=true&stream=both": 400, "?follow=true&attempt=2": 404, "?stream=": 400,
	} {
		if answer := s.stage.Call(t, http.MethodGet, s.path(query), ""); answer.Status != want {
			t.Errorf("%s: got %d %s, want %d", query, answer.Status, answer.Body, want)
		}
	}
	if answer := s.stage.Call(t, http.MethodGet, "/v1/tasks/none/logs?follow=true", ""); answer.Status != 404 {
		t.Errorf("got %d for an unknown task, want 404", answer.Status)
	}
	never := s.stage.Accept(t)
	post[contract.CancelAnswer](t, s.stage, "/v1/tasks/"+never+"/cancel", "", 200)
	if r := s.stage.Run(t, never); !r.State.Terminal() || r.Attempt.Number != 0 {
		t.Fatalf("got %s with attempt %d, want a run that ended before its first attempt", r.State, r.Attempt.Number)
	}
	if answer := s.stage.Call(t, http.MethodGet, "/v1/tasks/"+never+"/logs?follow=true", ""); answer.Status != 404 {
		t.Errorf("got %d for a run that ended before its first attempt, want 404", answer.Status)
	}
	ended := s.stage.Failure(t, "no manifest")
	if answer := s.stage.Call(t, http.MethodGet, "/v1/tasks/"+ended+"/logs?follow=true", ""); answer.Status != 404 {
		t.Errorf("got %d for a task that ended without a log, want 404", answer.Status)
	}
}
