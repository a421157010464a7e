package fault

// Code is a failure's name, stable over versions.
type Code string

// Failures of an attempt or of a run.
const (
	// StartTimeout: the machine was not seen running within the start limit.
	StartTimeout Code = "START_TIMEOUT"
	// Capacity: the platform has no room for the machine now.
	Capacity Code = "CAPACITY"
	// Image: the platform does not know or cannot start the image.
	Image Code = "IMAGE"
	// LaunchRefused: the platform refuses the machine for good.
	LaunchRefused Code = "LAUNCH_REFUSED"
	// HeartbeatTimeout: the worker was heard once and then no more.
	HeartbeatTimeout Code = "HEARTBEAT_TIMEOUT"
	// WorkerLost: the machine ended before the worker reported its result.
	WorkerLost Code = "WORKER_LOST"
	// OutOfMemory: the platform killed the worker for its memory.
	OutOfMemory Code = "OUT_OF_MEMORY"
	// MachineStopped: somebody else than this run stopped the machine. Such an
	// attempt is tried again and not counted.
	MachineStopped Code = "MACHINE_STOPPED"
	// RunTimeout: the attempt reached its time limit.
	RunTimeout Code = "RUN_TIMEOUT"
	// WorkerError: the worker reported an error in the export contract's words.
	WorkerError Code = "WORKER_ERROR"
	// WorkerStopped: the worker says that it was cancelled, and nobody wished it.
	WorkerStopped Code = "WORKER_STOPPED"
	// OutputMissing: the worker reported an output that is not in the bucket.
	OutputMissing Code = "OUTPUT_MISSING"
	// OutputMismatch: the output's size is not the one that was reported.
	OutputMismatch Code = "OUTPUT_MISMATCH"
	// QueueTimeout: no slot of the pool became free in time.
	QueueTimeout Code = "QUEUE_TIMEOUT"
	// ActionTimeout: what an action waited for did not happen in time.
	ActionTimeout Code = "ACTION_TIMEOUT"
	// Cancelled: the run was cancelled on request.
	Cancelled Code = "CANCELLED"
	// CancelTimeout: the worker did not end within the grace period.
	CancelTimeout Code = "CANCEL_TIMEOUT"
	// ExecutionLost: the run's execution ended before the run did, twice.
	ExecutionLost Code = "EXECUTION_LOST"
)

// Failures of a request.
const (
	// InvalidRequest: a field is missing, unknown or has a wrong value.
	InvalidRequest Code = "INVALID_REQUEST"
	// Unauthenticated: no token, or one that is not valid here.
	Unauthenticated Code = "UNAUTHENTICATED"
	// Forbidden: a valid token for something else.
	Forbidden Code = "FORBIDDEN"
	// NotFound: never seen, or expired.
	NotFound Code = "NOT_FOUND"
	// NotReady: the output is asked for before there is one, or there will be none.
	NotReady Code = "NOT_READY"
	// OutputExpired: there was an output; its retention is over.
	OutputExpired Code = "OUTPUT_EXPIRED"
	// AttemptMismatch: a callback of an attempt that is not the current one.
	AttemptMismatch Code = "ATTEMPT_MISMATCH"
	// TaskExpired: the attempt was declared dead.
	TaskExpired Code = "TASK_EXPIRED"
	// TaskAlreadyTerminal: the attempt ended otherwise before.
	TaskAlreadyTerminal Code = "TASK_ALREADY_TERMINAL"
	// WorkerMismatch: a call of another worker than the one that is heard.
	WorkerMismatch Code = "WORKER_MISMATCH"
	// NotEnded: what is asked for needs a run that has ended.
	NotEnded Code = "NOT_ENDED"
	// IdempotencyMismatch: the same Idempotency-Key with another body.
	IdempotencyMismatch Code = "IDEMPOTENCY_MISMATCH"
	// TooLarge: the body is over the limit.
	TooLarge Code = "TOO_LARGE"
	// Throttled: too many requests, here or at a platform.
	Throttled Code = "THROTTLED"
	// Unavailable: something Sortie needs does not answer now.
	Unavailable Code = "UNAVAILABLE"
	// StoreFull: the store has no room left.
	StoreFull Code = "STORE_FULL"
	// Internal: a failure that has no name.
	Internal Code = "INTERNAL"
)

type kind struct {
	category  Category
	blame     Blame
	retryable bool
}

// kinds holds what each code means. Categories and retry rules of attempts are
// those of the worker contract (WC-6).
var kinds = map[Code]kind{
	StartTimeout:     {Infrastructure, BlamePlatform, true},
	Capacity:         {Infrastructure, BlamePlatform, true},
	Image:            {Configuration, BlameClient, true},
	LaunchRefused:    {Configuration, BlameSortie, false},
	HeartbeatTimeout: {Timeout, BlameWorker, true},
	WorkerLost:       {Infrastructure, BlameWorker, true},
	OutOfMemory:      {Infrastructure, BlameWorker, true},
	MachineStopped:   {Infrastructure, BlamePlatform, true},
	RunTimeout:       {Timeout, BlameWorker, true},
	WorkerError:      {UserCode, BlameWorker, false},
	WorkerStopped:    {Infrastructure, BlameWorker, true},
	OutputMissing:    {Infrastructure, BlameWorker, true},
	OutputMismatch:   {Infrastructure, BlameWorker, true},
	QueueTimeout:     {Timeout, BlamePlatform, false},
	ActionTimeout:    {Timeout, BlameClient, false},
	Cancelled:        {CategoryCancel, BlameClient, false},
	CancelTimeout:    {CategoryCancel, BlameWorker, false},
	ExecutionLost:    {Infrastructure, BlameSortie, false},

	InvalidRequest:      {"", BlameClient, false},
	Unauthenticated:     {"", BlameClient, false},
	Forbidden:           {"", BlameClient, false},
	NotFound:            {"", BlameClient, false},
	NotReady:            {"", BlameClient, true},
	OutputExpired:       {"", BlameClient, false},
	AttemptMismatch:     {"", BlameWorker, false},
	TaskExpired:         {"", BlameWorker, false},
	TaskAlreadyTerminal: {"", BlameWorker, false},
	WorkerMismatch:      {"", BlameWorker, false},
	NotEnded:            {"", BlameClient, true},
	IdempotencyMismatch: {"", BlameClient, false},
	TooLarge:            {"", BlameClient, false},
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

// Known says whether the code is one of this package's.
func (c Code) Known() bool { _, ok := kinds[c]; return ok }
