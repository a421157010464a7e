package httpkit

import (
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
)

// Failures that only HTTP knows; they have no meaning below this package.
const (
	codeMethod       fault.Code = "METHOD_NOT_ALLOWED"
	codeMediaType    fault.Code = "UNSUPPORTED_MEDIA_TYPE"
	codePrecondition fault.Code = "PRECONDITION_FAILED"
	codeRange        fault.Code = "RANGE_NOT_SATISFIABLE"
)

// answer is how a failure is told over HTTP.
type answer struct {
	status int
	title  string
	// word is the worker contract's name for it; empty where it has none.
	word string
	// backoff is when to come again; 0 where that is not said.
	backoff time.Duration
}

// answers is the one table from codes to HTTP. A code that is not in it is one
// that no request should meet: it is told as Internal.
var answers = map[fault.Code]answer{
	fault.InvalidRequest:      {status: http.StatusBadRequest, title: "The request is not valid"},
	fault.NotReady:            {status: http.StatusBadRequest, title: "There is no output"},
	fault.Unauthenticated:     {status: http.StatusUnauthorized, title: "A valid token is needed"},
	fault.Forbidden:           {status: http.StatusForbidden, title: "This is not allowed"},
	fault.NotFound:            {status: http.StatusNotFound, title: "Not found"},
	codeMethod:                {status: http.StatusMethodNotAllowed, title: "The method is not allowed"},
	fault.AttemptMismatch:     {status: http.StatusConflict, title: "Another attempt is the current one", word: contract.ErrorAttemptMismatch},
	fault.TaskAlreadyTerminal: {status: http.StatusConflict, title: "The attempt has ended otherwise", word: contract.ErrorTaskAlreadyTerminal},
	fault.WorkerMismatch:      {status: http.StatusConflict, title: "Another worker is heard", word: contract.ErrorWorkerMismatch},
	fault.NotEnded:            {status: http.StatusConflict, title: "The task has not ended"},
	fault.TaskExpired:         {status: http.StatusGone, title: "The attempt was declared dead", word: contract.ErrorTaskExpired},
	fault.OutputExpired:       {status: http.StatusGone, title: "The output has expired"},
	codePrecondition:          {status: http.StatusPreconditionFailed, title: "The output is another one"},
	fault.TooLarge:            {status: http.StatusRequestEntityTooLarge, title: "The body is too large"},
	codeMediaType:             {status: http.StatusUnsupportedMediaType, title: "The body is of the wrong type"},
	codeRange:                 {status: http.StatusRequestedRangeNotSatisfiable, title: "The range lies outside of the output"},
	fault.IdempotencyMismatch: {status: http.StatusUnprocessableEntity, title: "The idempotency key is taken"},
	fault.Throttled:           {status: http.StatusTooManyRequests, title: "Too many requests", backoff: time.Second},
	fault.Unavailable:         {status: http.StatusServiceUnavailable, title: "Not available now", backoff: time.Second},
	fault.StoreFull:           {status: http.StatusServiceUnavailable, title: "The store is full", backoff: 30 * time.Second},
	fault.Internal:            {status: http.StatusInternalServerError, title: "Internal error"},
}

// statusGone is what the access log has for a client that went away before it
// was answered; nothing of it is sent.
const statusGone = 499
