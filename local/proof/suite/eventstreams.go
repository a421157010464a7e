package suite

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func eventStreams() []Test {
	return []Test{
		{Name: "stream of events continues where it was cut", Requires: []Capability{Streams, NoticeLeaving, ScriptedWorkers}, Run: streamIsCut},
		{Name: "ticket opens a stream of its filter", Requires: []Capability{Streams, AnySource}, Run: ticketOpensAStream},
		{Name: "ticket is for streams alone", Run: ticketIsRefused},
		{Name: "unknown cursor of a stream is a gap", Requires: []Capability{Streams, AnySource}, Run: streamHasAGap},
		{Name: "unknown cursor of a stream is refused on request", Run: gapIsRefused},
	}
}

const pathStream = "/v1/events/stream"

// open opens a stream and checks its header.
func (c *Case) open(ctx context.Context, path string, limit int64, headers ...string) *outside.Stream {
	c.T.Helper()
	s, err := c.Open(ctx, path, limit, headers...)
	if err != nil {
		c.T.Fatal(err)
	}
	if s.Status != http.StatusOK {
		c.T.Fatalf("%s: got %d %+v, want a stream", path, s.Status, s.Problem)
	}
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"} {
		if got := s.Header.Get(name); got != want {
			c.T.Errorf("%s: got %s %q, want %q", path, name, got, want)
		}
	}
	return s
}

// The connections of a reader end at random, after this many bytes or this time.
const (
	cutBytes = 3000
	cutTime  = 600 * time.Millisecond
	cutLeast = 20
)

// streamIsCut follows three exports on connections that break, mostly within a message.
func streamIsCut(c *Case) {
	after := newestCursor(c.Client)
	filter := url.Values{"batchId": {c.Batch("one")}}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: the cuts of a test
	var got []events.Envelope
	tasks, cuts := []string(nil), 0
	for len(tasks) < 3 || !ended(got, tasks) || cuts < cutLeast {
		if len(tasks) < 3 && ended(got, tasks) {
			tasks = append(tasks, c.StartScripted("one", "success"))
		}
		read, at := c.readUntilCut(pathStream+"?"+filter.Encode(), after, random)
		got, after = append(got, read...), at
		cuts++
	}
	want := eventIDs(eventsAfter(c.Client, "earliest", 1000, filter))
	if ids := eventIDs(got); !slices.Equal(ids, want) {
		c.T.Errorf("seed %d, %d cuts: got the events %v, want %v", seed, cuts, ids, want)
	}
}

// ended reports whether the events contain the end of each task.
func ended(got []events.Envelope, tasks []string) bool {
	return !slices.ContainsFunc(tasks, func(task string) bool {
		return !slices.ContainsFunc(got, func(e events.Envelope) bool { return e.EventType == eventtype.Completed && e.Job.ID == task })
	})
}

// readUntilCut reads the messages after a cursor until the connection breaks. It returns the
// cursor of the last one.
func (c *Case) readUntilCut(path, after string, random *rand.Rand) (got []events.Envelope, at string) {
	c.T.Helper()
	ctx, cut := context.WithTimeout(c.T.Context(), time.Duration(random.Int64N(int64(cutTime))))
	defer cut()
	s, err := c.Open(ctx, path, 1+random.Int64N(cutBytes), "Last-Event-ID", after)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, after
	}
	if err != nil || s.Status != http.StatusOK {
		c.T.Fatalf("got %+v, %v, want a stream", s, err)
	}
	defer s.Close()
	for {
		m, err := s.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
			return got, after
		case err != nil:
			c.T.Fatal(err)
		case m.Event == contract.StreamGap:
			c.T.Fatalf("got the gap %s, want the events behind %s", m.Data, after)
		case m.Data != "":
			e := envelope(c.Client, []byte(m.Data))
			if m.Event != string(e.EventType) {
				c.T.Errorf("got the event %s with data of %s", m.Event, e.EventType)
			}
			got = append(got, e)
		}
		if m.ID != "" {
			after = m.ID
		}
	}
}

// ticket returns a ticket for the events that match the filter.
func (c *Case) ticket(filter contract.EventFilter) string {
	c.T.Helper()
	created, _ := send[contract.Ticket](c, http.MethodPost, "/v1/events/tickets", string(outside.Encode(c.T, filter)), http.StatusCreated)
	if created.Ticket == "" || created.ExpiresAt.IsZero() {
		c.T.Fatalf("got %+v, want a ticket with its expiry", created)
	}
	return created.Ticket
}

func ticketOpensAStream(c *Case) {
	after := newestCursor(c.Client)
	task := c.StartShort("one")
	c.End(task)
	all := c.publishedUntilEnd(after, url.Values{"taskId": {task}}, task)
	ticket := c.ticket(contract.EventFilter{TaskID: task, Types: []string{"job.accepted", "job.completed"}})
	for range 2 { // a ticket is also valid for reconnects
		ctx, leave := context.WithCancel(c.T.Context())
		s := c.open(ctx, pathStream+"?after="+after+"&ticket="+ticket, 0, "Authorization", "")
		var got []string
		for len(got) < 2 {
			m, err := s.Next()
			if err != nil {
				c.T.Fatalf("got %v after %v, want two events", err, got)
			}
			if m.Data != "" {
				got = append(got, envelope(c.Client, []byte(m.Data)).EventID)
			}
		}
		leave()
		s.Close()
		if want := []string{all[0].EventID, all[len(all)-1].EventID}; !slices.Equal(got, want) {
			c.T.Errorf("got the events %v, want the first and the last one of the task, %v", got, want)
		}
	}
}

// ticketIsRefused checks that a ticket is only valid for its filter and its route.
func ticketIsRefused(c *Case) {
	ticket := c.ticket(contract.EventFilter{TaskID: "none"})
	for path, want := range map[string]int{
		"/v1/events?ticket=" + ticket:                           http.StatusUnauthorized,
		"/v1/webhooks?ticket=" + ticket:                         http.StatusUnauthorized,
		pathStream + "?taskId=other&ticket=" + ticket:           http.StatusForbidden,
		pathStream + "?ticket=" + ticket[:len(ticket)-4]:        http.StatusUnauthorized,
		pathStream + "?ticket=":                                 http.StatusUnauthorized,
		pathStream:                                              http.StatusUnauthorized,
		pathStream + "?gap=maybe&ticket=" + ticket:              http.StatusBadRequest,
		pathStream + "?after=other-5&gap=fail&ticket=" + ticket: http.StatusGone,
	} {
		if answer := c.Call(http.MethodGet, path, "", "Authorization", ""); answer.Status != want {
			c.T.Errorf("%.60s: got %d %s, want %d", path, answer.Status, answer.Body, want)
		}
	}
	c.wantProblem(http.StatusBadRequest, "types", http.MethodPost, "/v1/events/tickets", `{"types":["job.none"]}`)
}

func streamHasAGap(c *Case) {
	after := newestCursor(c.Client)
	task := c.StartShort("one")
	c.End(task)
	c.publishedUntilEnd(after, url.Values{"taskId": {task}}, task)
	const asked = "other-5"
	ctx, leave := context.WithCancel(c.T.Context())
	defer leave()
	s := c.open(ctx, pathStream, 0, "Last-Event-ID", asked)
	defer s.Close()
	m, err := s.Next()
	if err != nil {
		c.T.Fatal(err)
	}
	gap := outside.Decode[contract.Gap](c.T, []byte(m.Data))
	retry, err := strconv.Atoi(m.Retry)
	if err != nil || retry < 1000 || retry > 5000 || m.Event != contract.StreamGap || gap.EventType != m.Event || gap.Asked != asked || gap.Oldest == "" || gap.Newest == "" {
		c.T.Errorf("got %+v, want a gap after %s with a retry of 1 to 5 s", m, asked)
	}
	first := outside.Get[contract.EventPage](c.Client, "/v1/events?after=earliest&limit=1")
	if m, err = s.Next(); err != nil || m.ID != gap.Oldest || m.ID != first.Next {
		c.T.Errorf("got %+v, %v after the gap, want the oldest event, %s", m, err, gap.Oldest)
	}
}

func gapIsRefused(c *Case) {
	for _, headers := range [][]string{nil, {"Last-Event-ID", "other-5"}} {
		path := pathStream + "?gap=fail"
		if headers == nil {
			path += "&after=other-5"
		}
		if answer := c.Call(http.MethodGet, path, "", headers...); answer.Status != http.StatusGone || answer.Problem(c.T).Code != "CURSOR_EXPIRED" {
			c.T.Errorf("%s: got %d %s, want 410", path, answer.Status, answer.Body)
		}
	}
	c.wantProblem(http.StatusBadRequest, "Last-Event-ID", http.MethodGet, pathStream, "", "Last-Event-ID", "x y")
}
