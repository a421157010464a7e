package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestStopLeavesTheTask disconnects a caller while the process stops. The next process
// continues the task.
func TestStopLeavesTheTask(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.engine.FailNext(mockengine.FailStall, 2)
	ctx, leave := context.WithCancel(t.Context())
	stream := s.client.Chat.Completions.NewStreaming(ctx, chat(5))
	if !stream.Next() {
		t.Fatalf("got error %v, want a first part", stream.Err())
	}
	id := "inf_" + strings.TrimPrefix(stream.Current().ID, "chatcmpl-")
	s.stop()
	leave()
	s.AwaitRequests(t, 1)
	if r := s.Run(t, id); r.Cancel != nil || r.State != run.Running {
		t.Errorf("got a task in state %s with cancel %+v, want one that runs on", r.State, r.Cancel)
	}
}

// TestCallAfterADisconnectIsAnswered repeats the call of a disconnected caller with the same
// key, also while the task is being cancelled.
func TestCallAfterADisconnectIsAnswered(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for round := range 8 {
		key := option.WithHeader("Idempotency-Key", fmt.Sprint("k", round))
		s.engine.FailNext(mockengine.FailStall, 2)
		ctx, leave := context.WithCancel(t.Context())
		first := s.client.Chat.Completions.NewStreaming(ctx, chat(5), key)
		if !first.Next() {
			t.Fatalf("round %d: got error %v, want a first part", round, first.Err())
		}
		if round%2 == 0 {
			leave()
			s.engine.WaitRunning(0)
		}
		var calls sync.WaitGroup
		if round%2 == 1 {
			calls.Go(leave) // at any time of the next call
		}
		second, leaveSecond := context.WithCancel(t.Context())
		again := s.client.Chat.Completions.NewStreaming(second, chat(5), key)
		if !again.Next() {
			t.Errorf("round %d: got error %v for the same key, want an answer", round, again.Err())
		} else if round%2 == 0 && again.Current().ID == first.Current().ID {
			t.Errorf("round %d: got the cancelled task %s again, want another one", round, again.Current().ID)
		}
		calls.Wait()
		leave()
		leaveSecond()
		s.engine.WaitRunning(0)
	}
}

// TestExpiredStreamIsAnsweredFromItsTranscript reads a response after its stream has expired,
// and after its transcript has.
func TestExpiredStreamIsAnsweredFromItsTranscript(t *testing.T) {
	t.Parallel()
	s := setup(t)
	want, err := s.client.Responses.New(t.Context(), response(5))
	if err != nil {
		t.Fatal(err)
	}
	r := s.Run(t, "inf_"+strings.TrimPrefix(want.ID, "resp_"))
	for !r.State.Terminal() { // that is committed after the end of the stream
		if err := s.dispatcher.Await(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r = s.Run(t, r.TaskID)
	}
	s.Clock.Advance(2 * time.Hour) // the streams of this server expire after one hour
	got, err := s.client.Responses.Get(t.Context(), want.ID, responses.ResponseGetParams{})
	if err != nil || got.OutputText() != want.OutputText() || got.OutputText() == "" || got.Status != want.Status || got.Usage.OutputTokens != want.Usage.OutputTokens {
		t.Errorf("got %+v (%v), want the answer %q of %d tokens", got, err, want.OutputText(), want.Usage.OutputTokens)
	}
	expired := func(what string, err error, words string) {
		t.Helper()
		if wrong, ok := errors.AsType[*sdk.Error](err); !ok || wrong.StatusCode != http.StatusGone || !strings.Contains(wrong.Message, words) {
			t.Errorf("%s: got %v, want 410 that says %q", what, err, words)
		}
	}
	expired("stream", s.client.Responses.GetStreaming(t.Context(), want.ID, after(1)).Err(), "the stream of the task has expired")
	ref := port.ResourceRef{Tenant: r.Tenant, Kind: "artifact", ID: r.Generation.Trace}
	trace, err := s.Store.LoadResource(t.Context(), ref)
	if err == nil {
		err = s.Store.WriteResources(t.Context(), nil, []port.Resource{trace})
	}
	if err != nil {
		t.Fatal(err)
	}
	expired("answer", second(s.client.Responses.Get(t.Context(), want.ID, responses.ResponseGetParams{})), "its transcript have expired")
}
