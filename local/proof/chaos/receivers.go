package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// manner is the way in which a receiver answers while faults are injected.
type manner string

// The manners of receivers. Failing receivers fail the first attempt of some events.
const (
	accepts manner = "accepts"
	fails   manner = "answers 500"
	cuts    manner = "cuts connections"
	delays  manner = "is slow"
	hangs   manner = "hangs"
)

const (
	// failEvery makes one of this many events fail.
	failEvery = 6
	// slowAnswer is the duration of a slow answer. mostHung limits the attempts that hang, each
	// for the time limit of an attempt.
	slowAnswer = 300 * time.Millisecond
	mostHung   = 3
)

// receiver is the HTTP server of a webhook.
type receiver struct {
	w      *world
	manner manner
	server *httptest.Server

	mu       sync.Mutex
	attempts map[string]int
	accepted map[string]bool
	hung     int
}

// startReceivers starts the receivers and creates their webhooks.
func (w *world) startReceivers(ctx context.Context) {
	for _, m := range []manner{accepts, fails, cuts, delays, hangs} {
		r := &receiver{w: w, manner: m, attempts: map[string]int{}, accepted: map[string]bool{}}
		r.server = httptest.NewServer(r)
		w.receivers = append(w.receivers, r)
		body := fmt.Sprintf(`{"url":%q,"eventTypes":["job.*"],"ordered":%t}`, r.server.URL, m == fails)
		for {
			status, text, err := w.call(ctx, http.MethodPost, "/v1/webhooks", body, "Idempotency-Key", string(m))
			if err == nil && (status == http.StatusCreated || status == http.StatusOK) {
				break
			}
			if err == nil && status < http.StatusInternalServerError {
				w.fail("webhook of the receiver that %s: got %d %.300s, want 201", m, status, text)
				return
			}
			if !w.wait(ctx, retryPause) {
				return
			}
		}
	}
}

// ServeHTTP answers a delivery attempt.
func (r *receiver) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body) //nolint:errcheck // the id is in the header
	id := request.Header.Get("Webhook-Id")
	switch r.fate(id) {
	case fails:
		answer.WriteHeader(http.StatusInternalServerError)
		return
	case cuts:
		if connection, _, err := http.NewResponseController(answer).Hijack(); err == nil {
			_ = connection.Close()
		}
		return
	case hangs:
		<-request.Context().Done()
		return
	case delays:
		r.w.wait(request.Context(), slowAnswer)
	}
	r.mu.Lock()
	r.accepted[id] = true
	r.mu.Unlock()
	answer.WriteHeader(http.StatusNoContent)
}

// fate chooses the answer to an attempt.
func (r *receiver) fate(id string) manner {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.attempts[id] == 0
	r.attempts[id]++
	select {
	case <-r.w.allInjected:
		return accepts
	default:
	}
	switch {
	case r.manner == delays:
		return delays
	case !first || len(r.attempts)%failEvery != 0 || r.hung == mostHung:
		return accepts
	case r.manner == hangs:
		r.hung++
	}
	return r.manner
}

// missing returns the number of events that the receiver did not accept.
func (r *receiver) missing(ids []string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if !r.accepted[id] {
			n++
		}
	}
	return n
}

// awaitDeliveries waits until each receiver has accepted the events of all runs. It returns
// their ids.
func (w *world) awaitDeliveries(ctx context.Context) (ids []string) {
	tasks, err := w.tasks(ctx)
	if err != nil {
		w.fail("%v", err)
		return nil
	}
	for _, t := range tasks {
		var page contract.TaskEvents
		if err := w.get(ctx, "/v1/tasks/"+t.TaskID+"/events?limit=1000", &page); err != nil {
			w.fail("%v", err)
		}
		for _, e := range page.Events {
			ids = append(ids, events.ID(e.EventID))
		}
	}
	for _, r := range w.receivers {
		for missing := r.missing(ids); missing > 0; missing = r.missing(ids) {
			if !w.wait(ctx, 10*retryPause) {
				w.fail("the receiver that %s misses %d of %d events", r.manner, missing, len(ids))
				break
			}
		}
	}
	w.note("%d events of runs were delivered to %d receivers", len(ids), len(w.receivers))
	return ids
}

// checkStream checks that the stored stream has each event of a run once. The stack must be
// down.
func (w *world) checkStream(ctx context.Context, want []string) error {
	db, err := sqlite.Open(ctx, filepath.Join(w.folder, stack.RecordsFile))
	if err != nil {
		return fmt.Errorf("cannot open the records: %w", err)
	}
	defer func() { _ = db.Close() }()
	feed, err := sqlite.NewFeed(ctx, db, sqlite.FeedConfig{Clock: w.config.Clock, Retention: 24 * time.Hour})
	if err != nil {
		return fmt.Errorf("cannot open the streams: %w", err)
	}
	streams, _, err := feed.Streams(ctx, port.EventStreams, "", 2)
	if err != nil || len(streams) != 1 {
		return fmt.Errorf("got the streams %v, want one: %w", streams, err)
	}
	found := map[string]int{}
	for at := int64(0); ; {
		records, err := feed.Read(ctx, streams[0], at, 1000)
		if err != nil {
			return fmt.Errorf("cannot read the stream: %w", err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			if r.Position != at+1 {
				w.fail("the stream has position %d behind %d", r.Position, at)
			}
			at = r.Position
			found[events.ID(r.ID)]++
		}
	}
	for _, id := range want {
		if found[id] != 1 {
			w.fail("the stream has event %s %d times, want once", id, found[id])
		}
	}
	return nil
}
