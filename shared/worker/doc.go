// Package worker is for people who write workers: it does the worker contract's
// conversation, so that a program has only its work to do.
//
//	func main() {
//		os.Exit(worker.Main(func(ctx context.Context, t *worker.Task) (worker.Result, error) {
//			t.Progress(10, "reading")
//			file, size, err := work(ctx)
//			if err != nil {
//				return worker.Result{}, err
//			}
//			return worker.Result{}, t.UploadOutput(ctx, file, size, "application/xml")
//		}))
//	}
//
// Main reads TASK_ENVELOPE, sends started, sends a heartbeat at each interval,
// and sends completed with what the function returned. Run does the same for a
// program that has its own main, and Start, Task.Complete and Task.Close are the
// parts. A program in another language is wrapped in sortie-exec.
//
//	envelope ──▶ started ──200──▶ your function ──▶ uploads ──▶ completed ──▶ end
//	                │                 ▲    │ Progress
//	               409           cancel    ▼
//	                ▼                 │  heartbeats ◀── renewed token, renewed addresses
//	              abort               └── shouldCancel, 409, 410, SIGTERM, deadline
//
// # What it promises
//
// The context that the function gets ends when the work is to stop, and
// context.Cause says why: ErrCancelled, ErrExpired, ErrMismatch, ErrEnded,
// ErrTerminated, ErrDeadline. A function that has not returned when four fifths
// of the grace period are over is given up: what is due is reported, and Main
// ends the process.
//
// A result is not lost while the control plane is away: completed is sent again,
// with full-jitter backoff and no sooner than Retry-After says, until it is
// accepted, refused, or the envelope's deadline is past (an hour where there is
// none). Network errors and 401, 408, 425, 429 and 5xx are tried again; any
// other answer ends it. Heartbeats go on until then. Whatever is sent can be
// sent twice without harm.
//
// SIGTERM is a cancel where one is wished, which a heartbeat asks at once.
// Where none is, the machine is being stopped: then a failed attempt is not
// reported, because the end of the machine says enough and is not counted.
//
// Where there is no TASK_ENVELOPE but the export contract's CALLBACK_URL, the
// result is one call of that, in that contract's shape; there are no heartbeats,
// and no uploads.
//
// # What it refuses
//
// Nothing is logged that is a secret: no token, no presigned address, no
// CALLBACK_URL, and no error that quotes one. Redirects are not followed. The
// package needs the standard library and the contract's shapes alone, starts
// two goroutines, and Task.Close waits for both.
package worker
