package httpkit

import (
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Codes that only HTTP needs.
const (
	codeMethod    fault.Code = "METHOD_NOT_ALLOWED"
	codeMediaType fault.Code = "UNSUPPORTED_MEDIA_TYPE"
	codeRange     fault.Code = "RANGE_NOT_SATISFIABLE"
	codeAccept    fault.Code = "NOT_ACCEPTABLE"
	codeUpgrade   fault.Code = "UPGRADE_REQUIRED"
)

// answer is the HTTP representation of a code.
type answer struct {
	status int
	title  string
	// word is the error code of the worker contract; empty without one.
	word string
	// backoff is the value of Retry-After; 0 omits it.
	backoff time.Duration
}

// answers maps codes to HTTP responses. Codes that are missing here are not expected in a
// request and become Internal.
var answers = map[fault.Code]answer{
	fault.InvalidRequest:      {status: http.StatusBadRequest, title: "Invalid request"},
	fault.UntrustedArtifact:   {status: http.StatusBadRequest, title: "The model is not signed by a trusted key"},
	fault.InvalidParams:       {status: http.StatusBadRequest, title: "The engine cannot do this"},
	fault.DeadlineUnmet:       {status: http.StatusBadRequest, title: "The deadline cannot be kept"},
	fault.NotReady:            {status: http.StatusBadRequest, title: "No output"},
	fault.Unauthenticated:     {status: http.StatusUnauthorized, title: "Missing or invalid token"},
	fault.Forbidden:           {status: http.StatusForbidden, title: "Forbidden"},
	fault.MissingScope:        {status: http.StatusForbidden, title: "The token does not have the scope"},
	fault.NotFound:            {status: http.StatusNotFound, title: "Not found"},
	fault.ModelUnknown:        {status: http.StatusNotFound, title: "Unknown model"},
	codeMethod:                {status: http.StatusMethodNotAllowed, title: "Method not allowed"},
	codeAccept:                {status: http.StatusNotAcceptable, title: "No such representation"},
	fault.AttemptMismatch:     {status: http.StatusConflict, title: "Another attempt is current", word: contract.ErrorAttemptMismatch},
	fault.TaskAlreadyTerminal: {status: http.StatusConflict, title: "The attempt has already ended", word: contract.ErrorTaskAlreadyTerminal},
	fault.TaskMismatch:        {status: http.StatusConflict, title: "The callback is of another task", word: contract.ErrorTaskMismatch},
	fault.WorkerMismatch:      {status: http.StatusConflict, title: "The attempt has another worker", word: contract.ErrorWorkerMismatch},
	fault.SequenceGap:         {status: http.StatusConflict, title: "Output is missing", word: contract.ErrorSequenceGap},
	fault.SequenceConflict:    {status: http.StatusConflict, title: "Other output has the sequence", word: contract.ErrorSequenceConflict},
	fault.NotEnded:            {status: http.StatusConflict, title: "The task has not ended"},
	fault.JobPaused:           {status: http.StatusConflict, title: "The job is paused"},
	fault.PoolInUse:           {status: http.StatusConflict, title: "The pool is in use"},
	fault.ModelExists:         {status: http.StatusConflict, title: "Another model has the id"},
	fault.ModelInUse:          {status: http.StatusConflict, title: "Pools serve the model"},
	fault.SessionClosed:       {status: http.StatusConflict, title: "The session is closed"},
	fault.NotStreamable:       {status: http.StatusConflict, title: "The task has no stream"},
	fault.NoEngine:            {status: http.StatusConflict, title: "The pool has no engine"},
	fault.TaskExpired:         {status: http.StatusGone, title: "The attempt has timed out", word: contract.ErrorTaskExpired},
	fault.OutputExpired:       {status: http.StatusGone, title: "The output has expired"},
	fault.OutputDeleted:       {status: http.StatusGone, title: "The output was deleted"},
	fault.Cancelled:           {status: http.StatusGone, title: "The task was cancelled"},
	fault.CursorExpired:       {status: http.StatusGone, title: "The stream does not have the events"},
	fault.PreconditionFailed:  {status: http.StatusPreconditionFailed, title: "Precondition failed"},
	fault.TooLarge:            {status: http.StatusRequestEntityTooLarge, title: "Body too large"},
	codeMediaType:             {status: http.StatusUnsupportedMediaType, title: "Unsupported media type"},
	codeUpgrade:               {status: http.StatusUpgradeRequired, title: "Not a WebSocket"},
	codeRange:                 {status: http.StatusRequestedRangeNotSatisfiable, title: "Range not satisfiable"},
	fault.IdempotencyMismatch: {status: http.StatusUnprocessableEntity, title: "Idempotency key used with another request"},
	fault.RunnerNotAllowed:    {status: http.StatusUnprocessableEntity, title: "The image or the runner is not allowed here"},
	fault.Unprocessable:       {status: http.StatusUnprocessableEntity, title: "Contradicting fields"},
	fault.AdmissionReject:     {status: http.StatusTooManyRequests, title: "Queue full", backoff: time.Second},
	fault.QueueFull:           {status: http.StatusTooManyRequests, title: "No room in the queue", backoff: time.Second},
	fault.Throttled:           {status: http.StatusTooManyRequests, title: "Too many requests", backoff: time.Second},
	fault.Unavailable:         {status: http.StatusServiceUnavailable, title: "Service unavailable", backoff: time.Second},
	fault.PoolUnready:         {status: http.StatusServiceUnavailable, title: "The pools of the model are draining", backoff: time.Second},
	fault.PoolUnavailable:     {status: http.StatusServiceUnavailable, title: "No pool serves the model now", backoff: time.Second},
	fault.ReplicaExhausted:    {status: http.StatusServiceUnavailable, title: "Every replica is busy", backoff: time.Second},
	fault.StoreFull:           {status: http.StatusServiceUnavailable, title: "The store is full", backoff: 30 * time.Second},
	fault.DecodeTimeout:       {status: http.StatusGatewayTimeout, title: "The engine did not answer in time"},
	fault.WorkerReset:         {status: http.StatusBadGateway, title: "The engine's answer ended too early"},
	fault.Internal:            {status: http.StatusInternalServerError, title: "Internal error"},
}

// statusGone is the status in the access log for a client that disconnected before the
// response. It is never sent.
const statusGone = 499
