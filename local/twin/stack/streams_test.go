package stack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	reading "github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// A reader receives each event once although the system is killed and restarted. It verifies
// that the stream is complete.
func TestReaderSurvivesARestart(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir()}
	first := spawn(t, given)
	reader, err := reading.New(reading.Config{URL: first.Addresses.URL, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	errDone := errors.New("done")
	var last string // the task whose end stops the reader
	tasks, followed := make(chan string, 1), make(chan error, 1)
	var got []string
	go func() {
		at := stream.Earliest
		followed <- reader.WithRetry(math.MaxInt64, nil).FollowEvents(ctx, nil, &at, func(document json.RawMessage) error {
			e, err := events.Parse(document)
			if err != nil {
				return err
			}
			got = append(got, e.EventID)
			select {
			case last = <-tasks:
			default:
			}
			if e.EventType == eventtype.Completed && e.Job.ID == last {
				return errDone
			}
			return nil
		})
	}()
	first.End(first.post(contract.ExportOptions{}))
	first.kill(syscall.SIGKILL)
	again := spawn(t, given)
	task := again.post(contract.ExportOptions{})
	tasks <- task
	again.End(task)
	if err := <-followed; !errors.Is(err, errDone) {
		t.Fatalf("got %v from the reader after %d events, want the end of the second run", err, len(got))
	}
	page, err := reader.EventPage(ctx, nil, stream.Earliest, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, document := range page.Events {
		e, err := events.Parse(document)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e.EventID)
	}
	if len(want) < len(got) || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("got the events %v, want %v", got, want)
	}
	keys, err := events.ParseKeys(again.Call(http.MethodGet, "/.well-known/jwks.json", "").Body)
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := reader.SignedEvents(ctx, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	if proof, err := events.Verify(ctx, bytes.NewReader(file), keys); err != nil || proof.Events < int64(len(got)) || proof.To == 0 {
		t.Errorf("got the proof %+v, %v, want one of at least %d events", proof, err, len(got))
	}
}

// A stop ends followed streams, and they do not delay it.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	s := spawn(t, served{Data: t.TempDir()})
	response, err := http.Get(s.Addresses.URL + "/v1/events/stream?after=earliest")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.kill(syscall.SIGTERM) // it does not wait for the reader
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(response.Body); err != nil || bytes.Count(rest.Bytes(), []byte("retry: ")) != 2 {
		t.Errorf("got %q, %v, want a retry at the start and at the end", rest.String(), err)
	}
}
