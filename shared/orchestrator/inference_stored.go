package orchestrator

import (
	"context"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Transcripts has the transcripts of tasks: Artifacts, or NoTranscripts.
type Transcripts interface {
	// Artifact returns an artifact and its content. Fault: NotFound.
	Artifact(ctx context.Context, who port.Identity, id string) (artifact.Artifact, io.ReadCloser, error)
}

// NoTranscripts is for a process that reads no transcripts. Its clients are referred to the
// artifact.
type NoTranscripts struct{}

// Artifact implements Transcripts. It returns the fault CursorExpired.
func (NoTranscripts) Artifact(_ context.Context, _ port.Identity, id string) (artifact.Artifact, io.ReadCloser, error) {
	return artifact.Artifact{}, nil, fault.New(fault.CursorExpired, "the stream of the task has expired; GET /v1/artifacts/%s has its transcript", id)
}

// Stored returns the events of a task that has ended and whose stream has expired: its answer
// from the transcript, as one token for each part, or its error. Fault: CursorExpired if the
// transcript does not exist, has expired, or is not read by this process.
func (s *Inference) Stored(ctx context.Context, who port.Identity, r run.Run) ([]inference.Event, error) {
	g := r.Generation
	if r.State.Terminal() && r.State != run.Completed {
		return endOf(r).Events(1, inference.EventID{}), nil
	}
	if g == nil || g.Trace == "" {
		return nil, fault.New(fault.CursorExpired, "the stream of the task has expired, and it has no transcript")
	}
	_, content, err := s.transcripts.Artifact(ctx, who, g.Trace)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.CursorExpired, "the stream of the task and its transcript have expired")
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // it was read as far as required
	records, err := inference.ReadTranscript(io.LimitReader(content, artifact.MaxSize), r.Attempt.Number)
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer of the task: %w", err)
	}
	records = append(records, inference.Record{Attempt: r.Attempt.Number, End: endRecord(g)})
	var events []inference.Event
	for i, record := range records {
		events = append(events, record.Events(int64(i+1), inference.EventID{})...)
	}
	return events, nil
}
