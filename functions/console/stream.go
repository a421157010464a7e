package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// pathStream is the address of the stream of changes, below the console.
const pathStream = "stream"

// recheck is how often the session of an open stream is checked.
const recheck = 2 * time.Second

// change is a message of the stream: an event, without its content. A page that shows its subject
// reads it again.
type change struct {
	Type  string `json:"type"`
	RunID string `json:"runId,omitempty"`
	JobID string `json:"jobId,omitempty"`
}

// stream serves the changes of the tenant as Server-Sent Events, from the event stream of the
// API. It ends with the session. Without a session it has no content: browsers then stop to
// reconnect, and report no error.
func (c *console) stream(w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if fault.Is(err, fault.Unauthenticated) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	ctx, end := c.untilSignOut(v)
	defer end()
	v.Request = r.WithContext(ctx)
	header := http.Header{"Accept": {typeEventStream}}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		header.Set("Last-Event-ID", last)
	}
	response, err := v.Call(http.MethodGet, "/v1/events/stream", nil, nil, header)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return page.Read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	to := httpkit.NewEventStream(w, c.Clock)
	if err := to.Begin(r); err != nil {
		return nil //nolint:nilerr // HEAD, or the reader has left
	}
	stop := context.AfterFunc(ctx, func() { _ = response.Body.Close() })
	defer stop()
	_ = relay(response.Body, to.Send) // the stream has ended, or the reader has left
	return nil
}

// untilSignOut returns the context of the request, which ends when the session has ended. The
// caller calls end.
func (c *console) untilSignOut(v *page.Visit) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(v.Request.Context())
	checked := make(chan struct{})
	due, stop := v.Config.Clock.NewTimer(recheck)
	go func() {
		defer close(checked)
		c.endWithSession(ctx, v.Session, cancel, due, stop)
	}()
	return ctx, func() { cancel(); <-checked }
}

// endWithSession calls end when the session has ended. It checks the session when the timer due
// expires, and again after each interval. A failure to read it ends nothing.
func (c *console) endWithSession(ctx context.Context, of session.Session, end func(), due <-chan time.Time, stop func()) {
	for {
		select {
		case <-ctx.Done():
			stop()
			return
		case <-due:
			due, stop = c.Clock.NewTimer(recheck)
		}
		if _, err := c.Sessions.Open(ctx, session.KindSession, of.Key); fault.Is(err, fault.Unauthenticated) {
			stop()
			end()
			return
		}
	}
}

// messageLimit is the largest size of a line of the event stream, in bytes. An envelope has at
// most 64 KiB.
const messageLimit = 1 << 20

// relay reads Server-Sent Events and sends them without the content of the events.
func relay(from io.Reader, send func([]byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), messageLimit)
	var message bytes.Buffer
	for lines.Scan() {
		line := lines.Text()
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimPrefix(value, " "); {
		case line == "":
			message.WriteByte('\n')
			if err := send(message.Bytes()); err != nil {
				return err
			}
			message.Reset()
		case name == "id" || name == "retry" || name == "":
			message.WriteString(line + "\n")
		case name == "event": // the type is in the data
			message.WriteString("event: change\n")
		case name == "data":
			text, err := json.Marshal(changeOf(value))
			if err != nil {
				return fmt.Errorf("cannot encode a change: %w", err)
			}
			message.WriteString("data: " + string(text) + "\n")
		}
	}
	return lines.Err()
}

// changeOf returns the change that an envelope reports.
func changeOf(envelope string) change {
	var e struct {
		EventType string `json:"eventType"`
		Job       struct {
			RunID        string `json:"runId"`
			DefinitionID string `json:"definitionId"`
		} `json:"job"`
	}
	if json.Unmarshal([]byte(envelope), &e) != nil {
		return change{}
	}
	return change{Type: e.EventType, RunID: e.Job.RunID, JobID: e.Job.DefinitionID}
}
