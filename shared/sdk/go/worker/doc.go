// Package worker is the Go SDK for workers of Sortie. It implements the calls
// of the worker contract, so that a program only has to do its work.
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
// Main reads TASK_ENVELOPE from the environment, sends started, sends a heartbeat at each
// interval, calls the function, and sends completed with the function's result. Run does the
// same for a program that has its own main. Start, Task.Complete and Task.Close are the parts
// of Run. The command sortie-exec wraps a program in any other language.
//
//	envelope ──▶ started ──200──▶ your function ──▶ uploads ──▶ completed ──▶ exit
//	                │                 ▲    │ Progress
//	               409           cancel    ▼
//	                ▼                 │  heartbeats ◀── renewed token, renewed URLs
//	              abort               └── shouldCancel, 409, 410, SIGTERM, deadline
//
// # Cancellation
//
// The context of the function ends when the work must stop. context.Cause returns the reason:
// ErrCancelled, ErrExpired, ErrMismatch, ErrEnded, ErrTerminated or ErrDeadline. The function
// must return within four fifths of the grace period (see Task.Grace). After that, Run abandons
// it and sends the report. Main then ends the process.
//
// After SIGTERM the SDK sends a heartbeat at once to find out whether a cancel was requested.
// If it was, the outcome is CANCELLED. If not, the machine is being stopped, and a failed
// attempt is not reported. The control plane sees the end of the machine and does not count it
// against the retry limit.
//
// # Heartbeats and progress
//
// Heartbeats are sent at the envelope's heartbeatIntervalMs from started until
// completed is accepted. Between them, a change of the progress is sent as well,
// at most once a second; changes within that second are coalesced into one
// heartbeat.
//
// # Output
//
// With Options.SendsOutput the work writes its output to Task.Stdout and Task.Stderr, and
// clients read it while the work runs. It is sent every 2 seconds while a client follows it,
// otherwise every 30 seconds, and before completed. Writes never wait for a call. Output that
// does not fit into 768 KiB replaces the oldest, and a line reports the number of missing
// bytes.
//
// # Delivery
//
// Every call may be sent more than once; the control plane treats repetitions as
// idempotent. completed is retried with full-jitter backoff, and not before
// Retry-After, until it is accepted, refused, or the envelope's deadline has
// passed (Options.ReportTimeout if there is no deadline). Network errors and the
// statuses 401, 408, 425, 429 and 5xx are retried. Any other status is final.
//
// # Workers of the export contract
//
// If the environment has the export contract's CALLBACK_URL and no TASK_ENVELOPE, the result is
// reported with one call of that URL in the shape of that contract. There are no heartbeats and
// no uploads.
//
// # Secrets and resources
//
// The package never logs a token, a presigned URL or CALLBACK_URL, nor an error
// that contains one. It does not follow redirects. It depends on the standard
// library and on the contract's types. A Task has two goroutines, and one more for
// output; Task.Close waits for them.
package worker
