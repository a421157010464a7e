package callback

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// takeOutput stores a chunk of a worker's output. A 200 means that it is durable.
func takeOutput(svc *runs.Workers, output *logs.Intake, w http.ResponseWriter, r *http.Request) error {
	bearer, body, err := admit[contract.TaskLog](svc, w, r)
	if err != nil {
		return err
	}
	chunk, err := chunkOf(body)
	if err != nil {
		return err
	}
	stored, err := output.Take(r.Context(), bearer, body.Attempt, chunk)
	if err != nil {
		return fmt.Errorf("cannot take the output: %w", err)
	}
	answer := contract.LogAnswer{Acknowledged: acknowledged(stored.At), Followed: stored.Followed}
	if stored.Cancel != nil {
		answer.ShouldCancel, answer.CancelReason = true, cmp.Or(*stored.Cancel, contract.CancelReasonUser)
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}

func chunkOf(body contract.TaskLog) (livelog.Frame, error) {
	chunk := livelog.Frame{Stream: livelog.Stream(body.Stream)}
	if body.Sequence == nil {
		return chunk, fault.Invalid("sequence", "missing sequence, want a number from 0")
	}
	if body.Data == nil {
		return chunk, fault.Invalid("data", "missing data, want base64")
	}
	chunk.Sequence = *body.Sequence
	if !slices.Contains(livelog.Streams(), chunk.Stream) {
		return chunk, fault.Invalid("stream", "unknown stream %q, want one of %v", limit.Cut(body.Stream, 20), livelog.Streams())
	}
	var err error
	if chunk.Data, err = base64.StdEncoding.DecodeString(*body.Data); err != nil {
		return chunk, fault.Invalid("data", "malformed data, want base64")
	}
	if len(chunk.Data) > limit.LogChunk {
		return chunk, fault.Invalid("data", "%d bytes of data, want at most %d", len(chunk.Data), limit.LogChunk)
	}
	if age := body.AgeMs; age != nil && *age > 0 && *age <= limit.TimeLimit.Milliseconds() {
		chunk.Lag = time.Duration(*age) * time.Millisecond
	}
	return chunk, nil
}
