package fault

import (
	"maps"
	"slices"
)

// Code is the name of a failure. It is stable across versions.
type Code string

// Failures of an attempt or of a run.
const (
	// StartTimeout: the machine was not seen running within the start limit.
	StartTimeout Code = "START_TIMEOUT"
	// Capacity: the platform has no room for the machine now.
	Capacity Code = "CAPACITY"
	// Image: the platform cannot find or start the image.
	Image Code = "IMAGE"
	// LaunchRefused: the platform refuses the machine permanently.
	LaunchRefused Code = "LAUNCH_REFUSED"
	// SecretMissing: a secret that the job refers to does not exist.
	SecretMissing Code = "SECRET_MISSING"
	// HeartbeatTimeout: a worker that had contacted Sortie stopped sending
	// heartbeats.
	HeartbeatTimeout Code = "HEARTBEAT_TIMEOUT"
	// WorkerLost: the machine ended before the worker reported its result.
	WorkerLost Code = "WORKER_LOST"
	// ProgramExit: the program of a job ended with an exit code that does not mean
	// success, or by a signal.
	ProgramExit Code = "PROGRAM_EXIT"
	// OutOfMemory: the platform killed the worker because it used too much memory.
	OutOfMemory Code = "OUT_OF_MEMORY"
	// MachineStopped: a third party stopped the machine. The attempt is retried and
	// does not count as an attempt.
	MachineStopped Code = "MACHINE_STOPPED"
	// PoolDrained: the drain of the attempt's pool reached its deadline. The attempt is
	// retried and does not count as an attempt.
	PoolDrained Code = "POOL_DRAINED"
	// RunTimeout: the attempt reached its time limit.
	RunTimeout Code = "RUN_TIMEOUT"
	// WorkerError: the worker reported an error with the export contract's callback.
	WorkerError Code = "WORKER_ERROR"
	// WorkerStopped: the worker reported CANCELLED but no cancel was requested.
	WorkerStopped Code = "WORKER_STOPPED"
	// OutputMissing: the worker reported an output that is not in the bucket.
	OutputMissing Code = "OUTPUT_MISSING"
	// OutputMismatch: the output's size or SHA-256 differs from the reported one.
	OutputMismatch Code = "OUTPUT_MISMATCH"
	// DeadlineExceeded: the run did not end before its deadline, which includes all attempts.
	DeadlineExceeded Code = "DEADLINE_EXCEEDED"
	// QueueTimeout: no slot of the pool became free in time.
	QueueTimeout Code = "QUEUE_TIMEOUT"
	// ActionTimeout: an action's wait reached its limit.
	ActionTimeout Code = "ACTION_TIMEOUT"
	// ActionFailed: an action that the job marks as critical failed.
	ActionFailed Code = "ACTION_FAILED"
	// ChildrenFailed: more children of the run failed than its job allows.
	ChildrenFailed Code = "CHILDREN_FAILED"
	// ItemsInvalid: the list of the items of the run is missing, malformed or too long.
	ItemsInvalid Code = "ITEMS_INVALID"
	// HookRefused: a hook that the job marks as critical refused the run.
	HookRefused Code = "HOOK_REFUSED"
	// Cancelled: the run was cancelled on request.
	Cancelled Code = "CANCELLED"
	// CancelTimeout: the worker did not end within the grace period of a cancel request.
	CancelTimeout Code = "CANCEL_TIMEOUT"
	// ExecutionLost: the run's execution ended twice before the run did.
	ExecutionLost Code = "EXECUTION_LOST"
	// DecodeTimeout: the engine did not generate the answer in time.
	DecodeTimeout Code = "DECODE_TIMEOUT"
	// WorkerReset: an engine's answer ended without its final event.
	WorkerReset Code = "WORKER_RESET"
)

// Failures of a request.
const (
	// InvalidRequest: a field is missing, unknown or has a wrong value.
	InvalidRequest Code = "INVALID_REQUEST"
	// Unauthenticated: the token is missing or invalid.
	Unauthenticated Code = "UNAUTHENTICATED"
	// Forbidden: the token is valid, but not for this resource.
	Forbidden Code = "FORBIDDEN"
	// MissingScope: the client's token does not have the scope of the operation.
	MissingScope Code = "MISSING_SCOPE"
	// NotFound: the resource is unknown or expired.
	NotFound Code = "NOT_FOUND"
	// NotReady: the output does not exist yet, or will not exist.
	NotReady Code = "NOT_READY"
	// OutputExpired: the retention of the output is over.
	OutputExpired Code = "OUTPUT_EXPIRED"
	// OutputDeleted: a client deleted the output.
	OutputDeleted Code = "OUTPUT_DELETED"
	// AttemptMismatch: the callback is from another attempt than the current one.
	AttemptMismatch Code = "ATTEMPT_MISMATCH"
	// TaskExpired: the attempt was declared dead.
	TaskExpired Code = "TASK_EXPIRED"
	// TaskAlreadyTerminal: the attempt has ended with another result.
	TaskAlreadyTerminal Code = "TASK_ALREADY_TERMINAL"
	// TaskMismatch: the callback names another task or batch than its token.
	TaskMismatch Code = "TASK_MISMATCH"
	// WorkerMismatch: the call is from another worker than the attempt's.
	WorkerMismatch Code = "WORKER_MISMATCH"
	// SequenceGap: output of the worker with an earlier sequence is missing.
	SequenceGap Code = "SEQUENCE_GAP"
	// SequenceConflict: the worker has sent other output under the same sequence.
	SequenceConflict Code = "SEQUENCE_CONFLICT"
	// NotEnded: the request needs a run that has ended.
	NotEnded Code = "NOT_ENDED"
	// PoolInUse: the pool cannot be deleted: runs use it, or it is the default one.
	PoolInUse Code = "POOL_IN_USE"
	// NoEngine: the pool has no engine.
	NoEngine Code = "NO_ENGINE"
	// JobPaused: the job is paused and takes no events.
	JobPaused Code = "JOB_PAUSED"
	// CursorExpired: the stream no longer has the events after the cursor.
	CursorExpired Code = "CURSOR_EXPIRED"
	// IdempotencyMismatch: the Idempotency-Key was used with another body.
	IdempotencyMismatch Code = "IDEMPOTENCY_MISMATCH"
	// RunnerNotAllowed: the image cannot run here, or not for this caller.
	RunnerNotAllowed Code = "RUNNER_NOT_ALLOWED"
	// PreconditionFailed: the resource does not meet the request's precondition.
	PreconditionFailed Code = "PRECONDITION_FAILED"
	// Unprocessable: the fields are well-formed, but contradict each other, or the
	// deployment does not support them.
	Unprocessable Code = "UNPROCESSABLE"
	// TooLarge: the body is over the limit.
	TooLarge Code = "TOO_LARGE"
	// InvalidParams: the engine does not support a parameter of the inference task.
	InvalidParams Code = "INVALID_PARAMS"
	// DeadlineUnmet: the answer cannot be complete before the deadline of the task.
	DeadlineUnmet Code = "DEADLINE_UNMET"
	// NotStreamable: the task has no stream of tokens.
	NotStreamable Code = "NOT_STREAMABLE"
	// ModelUnknown: neither the catalog nor the engine has the model.
	ModelUnknown Code = "MODEL_UNKNOWN"
	// UntrustedArtifact: the model has no signature of a trusted key, and one is required.
	UntrustedArtifact Code = "UNTRUSTED_ARTIFACT"
	// ModelExists: the catalog already has a model with this id.
	ModelExists Code = "MODEL_EXISTS"
	// ModelInUse: the model cannot be deleted: pools serve it.
	ModelInUse Code = "MODEL_IN_USE"
	// PoolUnready: the pools that serve the model are draining.
	PoolUnready Code = "POOL_UNREADY"
	// PoolUnavailable: no replica of the pool serves the model now.
	PoolUnavailable Code = "POOL_UNAVAILABLE"
	// ReplicaExhausted: every replica of the pool is busy.
	ReplicaExhausted Code = "REPLICA_EXHAUSTED"
	// AdmissionReject: the queue is full, or a budget is exhausted.
	AdmissionReject Code = "ADMISSION_REJECT"
	// SessionClosed: the session has expired, or has used its last turn.
	SessionClosed Code = "SESSION_CLOSED"
	// QueueFull: the queue has no room for a request of this size.
	QueueFull Code = "QUEUE_FULL_DROP_LRU"
	// Throttled: too many requests, here or at a platform.
	Throttled Code = "THROTTLED"
	// Unavailable: a service that Sortie depends on does not answer.
	Unavailable Code = "UNAVAILABLE"
	// StoreFull: the store is full.
	StoreFull Code = "STORE_FULL"
	// Internal: an unexpected failure.
	Internal Code = "INTERNAL"
)

type kind struct {
	category  Category
	blame     Blame
	retryable bool
}

// kinds maps each code to its category, blame and retry rule. Categories and retry rules
// of attempts follow the worker contract (WC-6).
var kinds = map[Code]kind{
	StartTimeout:     {Infrastructure, BlamePlatform, true},
	Capacity:         {Infrastructure, BlamePlatform, true},
	Image:            {Configuration, BlameClient, true},
	LaunchRefused:    {Configuration, BlameSortie, false},
	SecretMissing:    {Configuration, BlameClient, false},
	HeartbeatTimeout: {Timeout, BlameWorker, true},
	WorkerLost:       {Infrastructure, BlameWorker, true},
	ProgramExit:      {UserCode, BlameWorker, true},
	OutOfMemory:      {Infrastructure, BlameWorker, true},
	MachineStopped:   {Infrastructure, BlamePlatform, true},
	PoolDrained:      {Infrastructure, BlamePlatform, true},
	RunTimeout:       {Timeout, BlameWorker, true},
	WorkerError:      {UserCode, BlameWorker, false},
	WorkerStopped:    {Infrastructure, BlameWorker, true},
	OutputMissing:    {Infrastructure, BlameWorker, true},
	OutputMismatch:   {Infrastructure, BlameWorker, true},
	DeadlineExceeded: {Timeout, BlameClient, false},
	QueueTimeout:     {Timeout, BlamePlatform, false},
	ActionTimeout:    {Timeout, BlameClient, false},
	ActionFailed:     {Configuration, BlameClient, false},
	ChildrenFailed:   {UserCode, BlameClient, false},
	ItemsInvalid:     {UserCode, BlameClient, false},
	HookRefused:      {UserCode, BlameClient, false},
	Cancelled:        {CategoryCancel, BlameClient, false},
	CancelTimeout:    {CategoryCancel, BlameWorker, false},
	ExecutionLost:    {Infrastructure, BlameSortie, false},
	DecodeTimeout:    {Timeout, BlameWorker, true},
	WorkerReset:      {Infrastructure, BlameWorker, true},

	InvalidRequest:      {"", BlameClient, false},
	Unauthenticated:     {"", BlameClient, false},
	Forbidden:           {"", BlameClient, false},
	MissingScope:        {"", BlameClient, false},
	NotFound:            {"", BlameClient, false},
	NotReady:            {"", BlameClient, true},
	OutputExpired:       {"", BlameClient, false},
	OutputDeleted:       {"", BlameClient, false},
	AttemptMismatch:     {"", BlameWorker, false},
	TaskExpired:         {"", BlameWorker, false},
	TaskAlreadyTerminal: {"", BlameWorker, false},
	TaskMismatch:        {"", BlameWorker, false},
	WorkerMismatch:      {"", BlameWorker, false},
	SequenceGap:         {"", BlameWorker, false},
	SequenceConflict:    {"", BlameWorker, false},
	NotEnded:            {"", BlameClient, true},
	PoolInUse:           {"", BlameClient, true},
	JobPaused:           {"", BlameClient, true},
	CursorExpired:       {"", BlameClient, false},
	NoEngine:            {"", BlameClient, false},
	IdempotencyMismatch: {"", BlameClient, false},
	RunnerNotAllowed:    {"", BlameClient, false},
	PreconditionFailed:  {"", BlameClient, false},
	Unprocessable:       {"", BlameClient, false},
	TooLarge:            {"", BlameClient, false},
	InvalidParams:       {"", BlameClient, false},
	DeadlineUnmet:       {Timeout, BlameClient, false},
	NotStreamable:       {"", BlameClient, false},
	ModelUnknown:        {"", BlameClient, false},
	UntrustedArtifact:   {"", BlameClient, false},
	ModelExists:         {"", BlameClient, false},
	ModelInUse:          {"", BlameClient, true},
	PoolUnready:         {Infrastructure, BlamePlatform, true},
	PoolUnavailable:     {Infrastructure, BlamePlatform, true},
	ReplicaExhausted:    {Infrastructure, BlamePlatform, true},
	AdmissionReject:     {Infrastructure, BlamePlatform, true},
	SessionClosed:       {"", BlameClient, false},
	QueueFull:           {Infrastructure, BlamePlatform, true},
	Throttled:           {Infrastructure, BlamePlatform, true},
	Unavailable:         {Infrastructure, BlamePlatform, true},
	StoreFull:           {Infrastructure, BlamePlatform, true},
	Internal:            {Infrastructure, BlameSortie, true},
}

func (c Code) kind() kind {
	k, ok := kinds[c]
	if !ok {
		return kinds[Internal]
	}
	return k
}

// Codes returns all codes in alphabetical order.
func Codes() []Code { return slices.Sorted(maps.Keys(kinds)) }

// Known reports whether this package defines the code.
func (c Code) Known() bool { _, ok := kinds[c]; return ok }
