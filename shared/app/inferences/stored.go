package inferences

import (
	"context"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Catalog has the models of tenants.
type Catalog interface {
	// Model returns a model of the caller's tenant. Fault: ModelUnknown.
	Model(ctx context.Context, who port.Identity, id string) (catalog.Stored, error)
	// Admit returns a model that a task names, if tasks may use it. strict requires the
	// signature of a trusted key. Faults: ModelUnknown, PoolUnavailable for a retired model,
	// UntrustedArtifact.
	Admit(ctx context.Context, tenant, ref string, strict bool) (catalog.Model, error)
	// List returns a page of the models of the caller's tenant, which may be short or empty
	// although more follow.
	List(ctx context.Context, who port.Identity, f catalog.Filter, page port.Page) (models []catalog.Stored, next string, err error)
}

// Prompts stores the requests that are too large for the records of their tasks; see package prompts.
type Prompts interface {
	// Save stores the request of a task that has no record yet.
	Save(ctx context.Context, tenant, taskID string, content []byte) (*spec.Input, error)
	// Read returns the request of a task. Fault: NotFound if it was deleted.
	Read(ctx context.Context, input spec.Input) ([]byte, error)
	// Delete deletes the request of a task. It does nothing without one.
	Delete(ctx context.Context, tenant, taskID string) error
}

// TranscriptStore stores the transcripts of tasks as artifacts.
type TranscriptStore interface {
	Transcripts
	// Create stores an artifact and returns after it is durable. by names the creator. Faults:
	// InvalidRequest, TooLarge.
	Create(ctx context.Context, tenant, by string, in artifact.Draft) (a artifact.Artifact, existing bool, err error)
	// Remove removes an artifact, unless another one names it as its parent. It does nothing if it does
	// not exist.
	Remove(ctx context.Context, tenant, id string) error
}

// ArtifactRecords reads the records of artifacts.
type ArtifactRecords interface {
	// Record returns an artifact of the caller's tenant. Fault: NotFound.
	Record(ctx context.Context, who port.Identity, id string) (artifact.Artifact, error)
}

// Transcripts reads the transcripts of tasks, and other artifacts: a TranscriptStore, or NoTranscripts.
type Transcripts interface {
	ArtifactRecords
	// Artifact returns an artifact and its content. Fault: NotFound.
	Artifact(ctx context.Context, who port.Identity, id string) (artifact.Artifact, io.ReadCloser, error)
}

// NoTranscripts is for a process that reads no transcripts. Its clients are referred to the
// artifact.
type NoTranscripts struct{ ArtifactRecords }

// Artifact implements Transcripts. It returns the fault CursorExpired.
func (NoTranscripts) Artifact(_ context.Context, _ port.Identity, id string) (artifact.Artifact, io.ReadCloser, error) {
	return artifact.Artifact{}, nil, fault.New(fault.CursorExpired, "the stream of the task has expired; GET /v1/artifacts/%s has its transcript", id)
}

// Stored returns the events of a task that has ended and whose stream has expired: its answer
// from the transcript, as one token for each part, and its error if it has failed. Only answers
// that are complete or late have a transcript. Fault: CursorExpired if that of a complete answer does
// not exist, has expired, or is not read by this process.
func (s *Inference) Stored(ctx context.Context, who port.Identity, r run.Run) ([]inference.Event, error) {
	g := r.Generation
	last := inference.Record{Attempt: r.Attempt.Number}
	if failed := r.State.Terminal() && r.State != run.Completed; failed {
		if last = answer.EndOf(r); g == nil || g.Trace == "" {
			return last.Events(1, inference.EventID{}), nil
		}
	}
	if g == nil || g.Trace == "" {
		return nil, fault.New(fault.CursorExpired, "the stream of the task has expired, and it has no transcript")
	}
	_, content, err := s.transcripts.Artifact(ctx, who, g.Trace)
	if last.Error != nil && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.CursorExpired)) {
		return last.Events(1, inference.EventID{}), nil
	}
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
	if last.Error == nil {
		last.End = answer.EndRecord(g)
	}
	records = append(records, last)
	var events []inference.Event
	for i, record := range records {
		events = append(events, record.Events(int64(i+1), inference.EventID{})...)
	}
	return events, nil
}
