package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// ReadTranscripts lets Stored read the transcripts of tasks. It is called before the first
// request.
func (s *Inference) ReadTranscripts(from *Artifacts) { s.artifacts = from }

// Stored returns the events of a task that has ended and whose stream has expired: its
// answer as one token, from the transcript, or its error. Fault: CursorExpired if there is no
// transcript, or that has expired too.
func (s *Inference) Stored(ctx context.Context, who port.Identity, r run.Run) ([]inference.Event, error) {
	g := r.Generation
	if r.State.Terminal() && r.State != run.Completed {
		return endOf(r).Events(1, inference.EventID{}), nil
	}
	switch {
	case g == nil || g.Trace == "":
		return nil, fault.New(fault.CursorExpired, "the stream of the task has expired, and it has no transcript")
	case s.artifacts == nil:
		return nil, fault.New(fault.CursorExpired, "the stream of the task has expired; GET /v1/artifacts/%s has its transcript", g.Trace)
	}
	_, content, err := s.artifacts.Artifact(ctx, who, g.Trace)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.CursorExpired, "the stream of the task and its transcript have expired")
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // it was read as far as required
	var stored struct {
		Transcript string `json:"transcript"`
	}
	if err := json.NewDecoder(io.LimitReader(content, artifact.MaxSize)).Decode(&stored); err != nil {
		return nil, fmt.Errorf("cannot read the transcript of the task: %w", err)
	}
	end := &inference.End{TokensOut: g.TokensOut, DecodeMS: g.DecodeMS, TokensIn: g.TokensIn, Finish: g.Finish}
	events := inference.Record{Attempt: r.Attempt.Number, Tokens: []string{stored.Transcript}}.Events(1, inference.EventID{})
	return append(events, inference.Record{Attempt: r.Attempt.Number, End: end}.Events(2, inference.EventID{})...), nil
}
