package stream_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const path = "/v1/events/stream"

func (b *bench) at(n int64) string {
	return stream.Cursor{Epoch: b.Cursor().Epoch, Position: n}.String()
}

func TestStreamSendsEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted, eventtype.Queued)
	s := b.open(t, path+"?after=earliest")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := s.header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	if retry, err := strconv.Atoi(s.message(t)["retry"]); err != nil || retry < 1000 || retry > 5000 {
		t.Errorf("got retry %d, %v, want 1000 to 5000", retry, err)
	}
	if m := s.message(t); len(m) != 1 || m["id"] != b.at(0) {
		t.Errorf("got the first message %v, want the cursor %s alone", m, b.at(0))
	}
	for i, kind := range []eventtype.Type{eventtype.Accepted, eventtype.Queued} {
		m := s.message(t)
		e, err := events.Parse([]byte(m["data"]))
		if err != nil || m["id"] != b.at(int64(i+1)) || m["event"] != string(kind) || e.EventType != kind ||
			e.Job.ID != streamtest.Task(int64(i+1)) || e.Notifier.Delivery != events.DeliveryPlain || !utf8.ValidString(m["data"]) {
			t.Errorf("got %v, %v, want event %d of type %s", m, err, i+1, kind)
		}
	}
	b.add(t, eventtype.Completed)
	if m := s.message(t); m["id"] != b.at(3) || m["event"] != string(eventtype.Completed) {
		t.Errorf("got %v, want event 3 as it comes", m)
	}
}

func TestLastEventIDWins(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted, eventtype.Queued, eventtype.Admitted)
	for name, row := range map[string]struct {
		query, last string
		first       int64
	}{
		"after":             {"?after=" + b.at(1), "", 1},
		"the header":        {"", b.at(2), 2},
		"both":              {"?after=earliest", b.at(2), 2},
		"neither":           {"", "", 3},
		"latest":            {"?after=latest", "", 3},
		"zero":              {"?after=0", "", 0},
		"header and latest": {"?after=latest", "0", 0},
	} {
		var headers []string
		if row.last != "" {
			headers = []string{"Last-Event-ID", row.last}
		}
		s := b.open(t, path+row.query, headers...)
		s.message(t)
		if m := s.message(t); m["id"] != b.at(row.first) {
			t.Errorf("%s: got the cursor %s, want %s", name, m["id"], b.at(row.first))
		}
		s.leave()
	}
}

func TestMessageOmitsTheEventName(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted)
	s := b.open(t, path+"?as=message&after=other-5")
	m := s.message(t)
	var gap contract.Gap
	if err := json.Unmarshal([]byte(m["data"]), &gap); err != nil || gap.EventType != contract.StreamGap {
		t.Errorf("got %v, %v, want a gap that the data names", m, err)
	}
	if _, named := m["event"]; named {
		t.Errorf("got %v, want no event name", m)
	}
	if m := s.message(t); m["event"] != "" || m["id"] != b.at(1) || m["data"] == "" {
		t.Errorf("got %v, want the event without a name", m)
	}
}

func TestGapOrRefusal(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted, eventtype.Queued)
	b.Clock.Advance(retention - time.Second)
	b.add(t, eventtype.Admitted)
	b.Clock.Advance(2 * time.Second)
	for _, asked := range []string{b.at(0), b.at(4), "other-3"} {
		s := b.open(t, path, "Last-Event-ID", asked)
		m := s.message(t)
		want := contract.Gap{EventType: contract.StreamGap, Asked: asked, Oldest: b.at(3), Newest: b.at(3)}
		var got contract.Gap
		if err := json.Unmarshal([]byte(m["data"]), &got); err != nil || got != want || m["event"] != contract.StreamGap || m["id"] != b.at(2) || m["retry"] == "" {
			t.Errorf("%s: got %v, %v, want %+v with the cursor before the oldest event", asked, m, err, want)
		}
		if m := s.message(t); m["id"] != b.at(3) || m["event"] != string(eventtype.Admitted) {
			t.Errorf("%s: got %v after the gap, want the oldest event", asked, m)
		}
		s.leave()
		for _, route := range []string{path, "/v1/events/ws"} {
			answer := b.Call(t, http.MethodGet, route+"?gap=fail&after="+asked, "", "Authorization", "Bearer "+token)
			if answer.Status != http.StatusGone || !strings.Contains(answer.Body, "CURSOR_EXPIRED") {
				t.Errorf("%s: got %d %s with gap=fail, want 410", asked, answer.Status, answer.Body)
			}
		}
	}
}

func TestStreamRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	for _, route := range []string{path, "/v1/events/ws"} {
		for query, field := range map[string]string{
			"?after=x": "after", "?after=": "after", "?types=job.none": "types", "?types=": "types", "?types=job.*,": "types",
			"?gap=maybe": "gap", "?gap=": "gap", "?jobId=": "jobId", "?taskId=" + strings.Repeat("x", 256): "taskId", "?projectId=%ff": "projectId",
			"?label=": "label", "?label=a%3D%3D%3Db": "label", "?label=a+in+(": "label", "?label=a%00": "label", "?label=" + strings.Repeat("a,", 4000): "label",
			"?limit=1": "limit", "?after=0&after=0": "after",
		} {
			answer := b.Call(t, http.MethodGet, route+query, "", "Authorization", "Bearer "+token)
			if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"field":"`+field+`"`) {
				t.Errorf("%s%s: got %d %s, want 400 for %s", route, query, answer.Status, answer.Body, field)
			}
		}
		answer := b.Call(t, http.MethodGet, route, "", "Authorization", "Bearer "+token, "Last-Event-ID", "x y")
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"field":"Last-Event-ID"`) {
			t.Errorf("%s: got %d %s for a malformed Last-Event-ID, want 400", route, answer.Status, answer.Body)
		}
	}
	if answer := b.Call(t, http.MethodGet, path+"?as=json", "", "Authorization", "Bearer "+token); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d %s for as=json, want 400", answer.Status, answer.Body)
	}
	if answer := b.Call(t, http.MethodHead, path, "", "Authorization", "Bearer "+token); answer.Status != http.StatusOK {
		t.Errorf("got %d for HEAD, want 200", answer.Status)
	}
}

func TestFilteredStreamMovesItsCursor(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	s := b.open(t, path+"?types=job.failed,schedule.*&after=0")
	s.message(t)
	s.message(t)
	b.add(t, eventtype.Accepted, eventtype.Failed, eventtype.Queued)
	if m := s.message(t); m["event"] != string(eventtype.Failed) || m["id"] != b.at(2) {
		t.Errorf("got %v, want the failure alone", m)
	}
	for m := s.message(t); m["id"] != b.at(3); m = s.message(t) {
		if len(m) != 1 {
			t.Fatalf("got %v, want the cursor alone", m)
		}
		b.Clock.Advance(stream.CursorInterval)
	}
}

var endOfStream = regexp.MustCompile(`^retry: [1-5]\d{3}\n\nid: \S+\n\n$`)

func TestStreamEndsWithARetry(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted)
	s := b.open(t, path)
	s.message(t)
	s.message(t)
	if err := b.streams.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if rest := s.rest(t); !endOfStream.MatchString(rest) {
		t.Errorf("got %q at the shutdown, want a retry and the end", rest)
	}
	late := b.open(t, path)
	if rest := late.rest(t); rest != "retry: 5000\n\nid: "+b.at(1)+"\n\n" {
		t.Errorf("got %q after the shutdown, want retry: 5000, the place and the end", rest)
	}
}

func TestReaderOverTheLimitIsAskedToRetry(t *testing.T) {
	t.Parallel()
	config := settings
	config.Readers = 1
	b := setup(t, config)
	b.add(t, eventtype.Accepted, eventtype.Queued)
	first := b.open(t, path)
	first.message(t)
	if rest := b.open(t, path+"?after="+b.at(1)).rest(t); rest != "retry: 5000\n\nid: "+b.at(1)+"\n\n" {
		t.Errorf("got %q over the limit, want retry: 5000, the place and the end", rest)
	}
	first.leave() // the server notices it
	for i := 0; ; i++ {
		again := b.open(t, path)
		if m := again.message(t); m["retry"] != "5000" {
			break
		}
		if i == 1000 {
			t.Fatal("got no seat after the first reader left, want one")
		}
	}
}

// TestTicketHasNoOtherScopes mints tickets of clients with different scopes.
func TestTicketHasNoOtherScopes(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	tokens := grants.NewTokens(parts.Signer, parts.Clock, func(n int) string { return strings.Repeat("0", 2*n) })
	for _, row := range []struct{ of, want []access.Scope }{
		{access.Scopes(), []access.Scope{access.EventsRead, access.RunsRead}},
		{[]access.Scope{access.EventsRead, access.Admin}, []access.Scope{access.EventsRead}},
	} {
		text, _, err := tokens.Ticket(t.Context(), port.Identity{Tenant: "a", Workspace: "w", Subject: "token:1", Scopes: row.of}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := tokens.OpenTicket(t.Context(), text); err != nil || !slices.Equal(got.Scopes, row.want) {
			t.Errorf("a client with %v: got a ticket with %v (%v), want %v", row.of, got.Scopes, err, row.want)
		}
	}
}

func TestTicketIsForItsTenant(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted, eventtype.Failed)
	ticket := func(bearer, body string) string {
		answer := b.Call(t, http.MethodPost, "/v1/events/tickets", body, "Authorization", "Bearer "+bearer)
		var got contract.Ticket
		if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || answer.Status != http.StatusCreated || !got.ExpiresAt.Equal(apitest.Began.Add(time.Hour)) {
			t.Fatalf("got %d %s, %v, want a ticket for an hour", answer.Status, answer.Body, err)
		}
		return got.Ticket
	}
	mine := ticket(token, `{"types":["job.failed"]}`)
	for range 2 { // it is good for reconnects
		s := b.open(t, path+"?after=0&ticket="+mine)
		s.message(t)
		s.message(t)
		if m := s.message(t); m["id"] != b.at(2) || m["event"] != string(eventtype.Failed) {
			t.Errorf("got %v, want the failure alone", m)
		}
		s.leave()
	}
	theirs := b.open(t, path+"?after=0&ticket="+ticket(stranger, ""))
	theirs.message(t)
	if m := theirs.message(t); m["id"] != "0" || len(m) != 1 {
		t.Errorf("got %v for another tenant, want an empty stream", m)
	}
	for route, want := range map[string]int{
		path + "?types=job.*&ticket=" + mine: 403, "/v1/events?ticket=" + mine: 401, "/v1/events/tickets?ticket=" + mine: 401,
		path + "?ticket=" + mine[:len(mine)-4]: 401, path + "?ticket=": 401, path: 401,
	} {
		method := http.MethodGet
		if strings.Contains(route, "tickets") {
			method = http.MethodPost
		}
		if answer := b.Call(t, method, route, ""); answer.Status != want {
			t.Errorf("%s: got %d %s, want %d", route, answer.Status, answer.Body, want)
		}
	}
	b.Clock.Advance(time.Hour)
	if answer := b.Call(t, http.MethodGet, path+"?ticket="+mine, ""); answer.Status != http.StatusUnauthorized {
		t.Errorf("got %d %s after an hour, want 401", answer.Status, answer.Body)
	}
	if strings.Contains(b.Logs(), mine) {
		t.Error("got the ticket in the log, want none")
	}
	for body, field := range map[string]string{
		`{"types":["job.none"]}`: "types", `{"tenantId":"tenant-b"}`: "tenantId", `{"taskId":"` + strings.Repeat("x", 256) + `"}`: "taskId",
	} {
		answer := b.Call(t, http.MethodPost, "/v1/events/tickets", body, "Authorization", "Bearer "+token)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want 400 for %s", body, answer.Status, answer.Body, field)
		}
	}
}

// TestSlowReaderIsCutOff checks that a reader that does not read is disconnected and does not
// delay others.
func TestSlowReaderIsCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path+"?after=0", token)
	s := b.open(t, path+"?after=0")
	s.message(t)
	s.message(t)
	b.Message = strings.Repeat("x", 8<<10)
	many := slices.Repeat([]eventtype.Type{eventtype.Queued}, 20)
	for range 50 { // more than the buffers of a connection have
		b.add(t, many...)
		for range many {
			if m := s.message(t); m["event"] == "" {
				t.Fatalf("got %v, want an event", m)
			}
		}
	}
	s.leave()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; strings.Count(b.Logs(), `"route":"`+path+`"`) < 2; i++ {
		if i == 10_000 {
			t.Fatalf("got the log %s, want the end of both streams", b.Logs())
		}
		<-tick.C
		b.Clock.Advance(time.Second / 4)
	}
	if slow := b.tally.Of(series.ReadersEnded, "sse", "slow"); slow != 1 {
		t.Errorf("got %v slow readers, want 1", slow)
	}
}
