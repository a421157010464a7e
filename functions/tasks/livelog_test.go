package tasks_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// sender is a worker that sends its output.
type sender struct {
	stage   *apitest.Stage
	task    string
	token   string
	attempt int
	next    int
}

func setupSender(t *testing.T, change ...func(*apitest.Settings)) *sender {
	t.Helper()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(routes(parts.Signer)(s), callback.Routes(s.Workers, s.Intake)...)
	}, change...)
	s := &sender{stage: stage, task: stage.Accept(t)}
	s.begin(t)
	return s
}

// begin starts the next attempt.
func (s *sender) begin(t *testing.T) {
	t.Helper()
	s.stage.Start(t, s.task)
	envelope := s.stage.Envelope(t, s.task)
	s.token, s.attempt, s.next = envelope.TaskToken, envelope.Attempt, 1
	s.call(t, "started", fmt.Sprintf(`{"attempt":%d,"workerId":"w","sendsOutput":true}`, s.attempt), 200)
}

func (s *sender) call(t *testing.T, name, body string, status int) apitest.Answer {
	t.Helper()
	answer := s.stage.Call(t, http.MethodPost, "/v1/tasks/"+s.task+"/"+name, body, "Authorization", "Bearer "+s.token)
	if answer.Status != status {
		t.Fatalf("%s: got %d %s, want %d", name, answer.Status, answer.Body, status)
	}
	return answer
}

func logBody(attempt int, stream string, sequence int, data string) string {
	return fmt.Sprintf(`{"attempt":%d,"stream":%q,"sequence":%d,"data":%q}`, attempt, stream, sequence, base64.StdEncoding.EncodeToString([]byte(data)))
}

// send sends a chunk.
func (s *sender) send(t *testing.T, stream, data string) contract.LogAnswer {
	t.Helper()
	answer := s.call(t, "logs", logBody(s.attempt, stream, s.next, data), 200)
	s.next++
	var v contract.LogAnswer
	if err := json.Unmarshal([]byte(answer.Body), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// end reports success and settles the attempt.
func (s *sender) end(t *testing.T) {
	t.Helper()
	s.call(t, "completed", fmt.Sprintf(`{"attempt":%d,"workerId":"w","outcome":"SUCCEEDED"}`, s.attempt), 200)
	s.stage.Settle(t, s.task)
	if state := s.stage.Run(t, s.task).State; state != run.Completed {
		t.Fatalf("got state %s, want %s", state, run.Completed)
	}
}

func (s *sender) path(query string) string { return "/v1/tasks/" + s.task + "/logs" + query }

// wantObjects checks the number of objects in the bucket of logs.
func (s *sender) wantObjects(t *testing.T, n int) {
	t.Helper()
	if got := s.stage.Objects.Count(port.Accepted); got != n {
		t.Errorf("got %d stored objects, want %d", got, n)
	}
}

// TestSentOutputIsShown reads output while the worker sends it, and after its end.
func TestSentOutputIsShown(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	wantNoLog(t, s.stage, s.path(""))
	s.send(t, "stdout", "page 1\n")
	s.send(t, "stderr", "slow\n")
	s.send(t, "stdout", "page 2, done\x00\xff")
	for _, ended := range []string{"false", "true"} {
		wantLog(t, s.stage, s.path(""), "page 1\nslow\npage 2, done\x00\xff", "1", ended)
		wantLog(t, s.stage, s.path("?stream=stdout"), "page 1\npage 2, done\x00\xff", "1", ended)
		wantLog(t, s.stage, s.path("?stream=stderr"), "slow\n", "1", ended)
		wantLog(t, s.stage, s.path("?offset=8"), "low\npage 2, done\x00\xff", "1", ended)
		wantLog(t, s.stage, s.path("?stream=stdout&offset=7"), "page 2, done\x00\xff", "1", ended)
		wantLog(t, s.stage, s.path("?offset=1000"), "", "1", ended)
		if ended == "false" {
			s.end(t)
		}
	}
	s.wantObjects(t, 1)
	s.stage.Clock.Advance(8 * 24 * time.Hour)
	if err := s.stage.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.wantObjects(t, 0)
}

// TestLinesHaveTheirTime reads the time of output while its worker sends it, and of the stored log.
// Output that an earlier version has stored has no time.
func TestLinesHaveTheirTime(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	began := s.stage.Clock.Now().UTC().Truncate(time.Millisecond)
	s.call(t, "logs", `{"attempt":1,"stream":"stdout","sequence":1,"data":"YQo=","ageMs":1500}`, 200)
	s.stage.Clock.Advance(time.Second)
	s.call(t, "logs", `{"attempt":1,"stream":"stderr","sequence":2,"data":"YgpjCg=="}`, 200)
	times := func() (all []time.Time) {
		t.Helper()
		answer := s.stage.Call(t, http.MethodGet, s.path("?attempt=1"), "", "Accept", "application/x-ndjson")
		for text := range strings.Lines(answer.Body) {
			all = append(all, line(t, bufio.NewReader(strings.NewReader(text))).At)
		}
		return all
	}
	want := []time.Time{began.Add(-1500 * time.Millisecond), began.Add(time.Second)}
	if got := times(); !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("got the times %v of sent output, want %v", got, want)
	}
	s.end(t)
	if got := times(); !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("got the times %v of a stored log, want %v", got, want)
	}
	old := []byte("{}\nstdout 0 2\na\n\nstderr cut 5\n")
	if err := s.stage.Objects.Put(t.Context(), port.Accepted, limit.LogKey(s.stage.Run(t, s.task).Tenant, s.task, 1), livelog.ContentType, old); err != nil {
		t.Fatal(err)
	}
	if got := times(); !slices.Equal(got, make([]time.Time, 2)) {
		t.Errorf("got the times %v of an old log, want none", got)
	}
}

// TestSentOutputOutlivesItsWorker ends a worker before it reports.
func TestSentOutputOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	s.send(t, "stdout", "before the end\n")
	s.send(t, "stderr", "the last\n")
	s.stage.Write(t, s.task, "before the end\nthe last\nnot sent\n") // the machine has further output
	s.stage.LoseMachine(t, s.task)
	wantLog(t, s.stage, s.path("?attempt=1"), "before the end\nthe last\nnot sent\n", "1", "true")
	wantLog(t, s.stage, s.path("?attempt=1&stream=stderr"), "the last\n", "1", "true")
	s.stage.Clock.Advance(time.Minute)
	s.begin(t)
	s.send(t, "stdout", "second\n")
	s.stage.LoseMachine(t, s.task)
	wantLog(t, s.stage, s.path("?attempt=1"), "before the end\nthe last\nnot sent\n", "1", "true")
	wantLog(t, s.stage, s.path("?attempt=2"), "second\n", "2", "true")
	s.wantObjects(t, 2)
}

// TestSplitSecretIsMasked checks that a secret that is split over chunks is never shown, even
// with other output between its parts.
func TestSplitSecretIsMasked(t *testing.T) {
	t.Parallel()
	for cut := range 3 {
		s := setupSender(t)
		env := s.stage.Environment(t, s.task)
		_, callbackToken, _ := strings.Cut(env["CALLBACK_URL"], "token=")
		for i, secret := range []string{s.token, env["R2_SECRET_ACCESS_KEY"], callbackToken} {
			at := []int{5, len(secret) / 2, len(secret) - 5}[cut]
			s.send(t, "stdout", fmt.Sprintf("%d is %s", i, secret[:at]))
			s.send(t, "stderr", "other\n")
			if body := s.stage.Call(t, http.MethodGet, s.path(""), "").Body; at > 8 && strings.Contains(body, secret[:at]) {
				t.Errorf("got the begin of a secret in %q, want it held back", body)
			}
			s.send(t, "stdout", secret[at:]+" end\n")
		}
		want := "0 is other\n[redacted] end\n1 is other\n[redacted] end\n2 is other\n[redacted] end\n"
		wantLog(t, s.stage, s.path(""), want, "1", "false")
		s.end(t)
		wantLog(t, s.stage, s.path(""), want, "1", "true")
		stored := s.stage.Objects.Content(port.Accepted, limit.LogKey(apitest.Tenant, s.task, 1))
		if strings.Contains(stored, s.token[10:40]) || !strings.Contains(stored, "[redacted] end\n") {
			t.Errorf("got stored log %q, want masks", stored)
		}
	}
}

func TestOutputCallsAreFenced(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	refused := func(body string, status int, code, field string) contract.Problem {
		t.Helper()
		var p contract.Problem
		if err := json.Unmarshal([]byte(s.call(t, "logs", body, status).Body), &p); err != nil || p.Code != code || p.Field != field {
			t.Errorf("%.80s: got %+v, %v, want %s for %q", body, p, err, code, field)
		}
		return p
	}
	if p := refused(logBody(1, "stdout", 2, "b"), 409, "SEQUENCE_GAP", ""); p.Error != "sequence_gap" || p.ExpectedSequence != 1 {
		t.Errorf("got %+v, want sequence_gap with 1", p)
	}
	s.send(t, "stdout", "a\n")
	for range 2 {
		s.call(t, "logs", logBody(1, "stdout", 1, "a\n"), 200)
	}
	refused(logBody(1, "stdout", 1, "b\n"), 409, "SEQUENCE_CONFLICT", "")
	refused(logBody(1, "stderr", 1, "a\n"), 409, "SEQUENCE_CONFLICT", "")
	if p := refused(logBody(1, "stdout", 4, "b"), 409, "SEQUENCE_GAP", ""); p.ExpectedSequence != 2 {
		t.Errorf("got %+v, want sequence 2", p)
	}
	for field, body := range map[string]string{
		"attempt":  `{"attempt":0,"stream":"stdout","sequence":2,"data":""}`,
		"stream":   `{"attempt":1,"stream":"stdin","sequence":2,"data":""}`,
		"sequence": `{"attempt":1,"stream":"stdout","sequence":-1,"data":""}`,
		"data":     `{"attempt":1,"stream":"stdout","sequence":2,"data":"%"}`,
	} {
		refused(body, 400, "INVALID_REQUEST", field)
	}
	refused(`{"attempt":1,"stream":"stdout","data":""}`, 400, "INVALID_REQUEST", "sequence")
	refused(`{"attempt":1,"stream":"stdout","sequence":2}`, 400, "INVALID_REQUEST", "data")
	refused(logBody(1, "stdout", 2, strings.Repeat("x", 32<<10+1)), 400, "INVALID_REQUEST", "data")
	s.send(t, "stdout", strings.Repeat("x", 32<<10))
	refused(logBody(2, "stdout", 3, "b"), 409, "ATTEMPT_MISMATCH", "")
	stage := s.stage
	if answer := stage.Call(t, http.MethodPost, s.path(""), logBody(1, "stdout", 3, "b"), "Authorization", "Bearer x"); answer.Status != 401 {
		t.Errorf("got %d without a valid token, want 401", answer.Status)
	}
	stage.LoseMachine(t, s.task)
	refused(logBody(1, "stdout", 3, "b"), 410, "TASK_EXPIRED", "")
	stage.Clock.Advance(time.Minute)
	old := *s
	s.begin(t)
	if p := old.call(t, "logs", logBody(1, "stdout", 3, "b"), 410); !strings.Contains(p.Body, "task_expired") {
		t.Errorf("got %s for an earlier attempt, want task_expired", p.Body)
	}
	old.call(t, "logs", logBody(2, "stdout", 1, "b"), 403)
	wantLog(t, stage, s.path("?attempt=1"), "a\n"+strings.Repeat("x", 32<<10), "1", "true")
}

func TestOutputAnswerCarriesTheCancel(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	if answer := s.send(t, "stdout", "a\n"); answer.ShouldCancel || answer.Followed {
		t.Errorf("got %+v, want neither a cancel nor a follower", answer)
	}
	post[contract.CancelAnswer](t, s.stage, "/v1/tasks/"+s.task+"/cancel", "", 202)
	if answer := s.send(t, "stdout", "b\n"); !answer.ShouldCancel || answer.CancelReason != contract.CancelReasonUser {
		t.Errorf("got %+v, want the cancel request", answer)
	}
	if r := s.stage.Run(t, s.task); r.Attempt.CancelDeliveredAt.IsZero() {
		t.Error("got no delivery of the cancel request in the record")
	}
}

// TestUnannouncedOutputIsStored checks that a worker that does not announce its output may send
// it.
func TestUnannouncedOutputIsStored(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	s.stage.LoseMachine(t, s.task)
	s.stage.Clock.Advance(time.Minute)
	s.stage.Start(t, s.task)
	s.token, s.attempt, s.next = s.stage.Envelope(t, s.task).TaskToken, 2, 0
	s.send(t, "stdout", "from zero\n")
	s.send(t, "stdout", "then one\n")
	s.stage.LoseMachine(t, s.task)
	wantLog(t, s.stage, s.path("?attempt=2"), "from zero\nthen one\n", "2", "true")
}

// TestCostOfSentOutput checks that a chunk costs one read and one write of the object store and
// no write of the table. The end of an attempt with output costs one more write than the end of
// one without.
func TestCostOfSentOutput(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	s.send(t, "stdout", "first\n")
	before, version := s.stage.Objects.Made(), s.stage.Run(t, s.task).Version
	const chunks = 5
	for range chunks {
		s.send(t, "stdout", strings.Repeat("x", 1000)+"\n")
	}
	during := s.stage.Objects.Made()
	if reads, writes := during["Open"]-before["Open"], during["Replace"]-before["Replace"]; reads != chunks || writes != chunks || during["Put"] != before["Put"] {
		t.Errorf("got %d reads and %d writes for %d chunks, want one each", reads, writes, chunks)
	}
	if now := s.stage.Run(t, s.task).Version; now != version {
		t.Errorf("got %d commits of the record, want none", now-version)
	}
	s.end(t)
	after := s.stage.Objects.Made()
	reads := after["Open"] + after["Head"] - during["Open"] - during["Head"]
	if writes := after["Put"] + after["Replace"] - during["Put"] - during["Replace"]; writes != 1 || reads > 3 {
		t.Errorf("got %d writes and %d reads at the end, want 1 and at most 3", writes, reads)
	}
}

// TestLongSentOutputLosesItsMiddle checks that the beginning and the end of long output are
// kept, and that the missing bytes are counted.
func TestLongSentOutputLosesItsMiddle(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	var whole strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("%04d %s\n", i, strings.Repeat("x", 32<<10-6))
		whole.WriteString(line)
		s.send(t, "stdout", line)
	}
	running := s.stage.Call(t, http.MethodGet, s.path(""), "").Body
	s.end(t)
	ended := s.stage.Call(t, http.MethodGet, s.path(""), "").Body
	begin, rest, _ := strings.Cut(ended, "\n[")
	var missing int
	if _, err := fmt.Sscanf(rest, "%d bytes are cut out here]", &missing); err != nil || running != ended {
		t.Fatalf("got %d bytes while running and %d after the end, %v, want the same with one cut", len(running), len(ended), err)
	}
	_, end, _ := strings.Cut(rest, "\n")
	if !strings.HasPrefix(whole.String(), begin) || !strings.HasSuffix(whole.String(), end) || len(begin) < 256<<10 || len(end) < 256<<10 {
		t.Errorf("got %d bytes of the begin and %d of the end, want at least 256 KiB of both", len(begin), len(end))
	}
	if len(ended) > 1<<20 || len(begin)+missing+len(end) != whole.Len() {
		t.Errorf("got %d + %d cut + %d bytes in %d, want %d in at most 1 MiB", len(begin), missing, len(end), len(ended), whole.Len())
	}
	at := len(begin) + missing
	wantLog(t, s.stage, s.path(fmt.Sprintf("?offset=%d", at)), end, "1", "true")
	s.wantObjects(t, 1)
}

// TestSentOutputStaysIfItsLogCannotBeStored makes storing the log fail once. The sent output
// remains readable and is deleted later.
func TestSentOutputStaysIfItsLogCannotBeStored(t *testing.T) {
	t.Parallel()
	s := setupSender(t)
	s.send(t, "stdout", "kept\n")
	s.stage.Objects.BreakAfter(0)
	s.stage.LoseMachine(t, s.task)
	s.stage.Objects.BreakAfter(-1)
	wantLog(t, s.stage, s.path("?attempt=1"), "kept\n", "1", "true")
	s.wantObjects(t, 1)
	for range 2 {
		s.stage.Clock.Advance(time.Minute)
		s.begin(t)
		s.stage.LoseMachine(t, s.task)
	}
	s.stage.Clock.Advance(8 * 24 * time.Hour)
	if err := s.stage.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.wantObjects(t, 0)
}
