package conformance

import "slices"

// Requirement is a statement of a contract that scenarios check.
type Requirement struct {
	// Name identifies the requirement for programs.
	Name string `json:"name"`
	// Where is the id of the requirement in the tables of shared/wire/contract.
	Where string `json:"where"`
	// Text is the requirement in words.
	Text string `json:"text"`
}

// The requirements of the worker contract.
var (
	reqStarted        = Requirement{"started", "WC-3.1.1", "A worker sends started before any other call."}
	reqStartedRefused = Requirement{"started-409", "WC-3.1.5", "A worker aborts if started is answered with 409."}
	reqBearer         = Requirement{"bearer", "WC-2.1", "Every call carries the task token as Authorization: Bearer and nowhere else."}
	reqSecret         = Requirement{"secret", "WC-2.12", "A worker does not print the token or a presigned URL."}
	reqBucket         = Requirement{"bucket", "WC-2.12", "A worker sends the token to the control plane only, not to the bucket."}
	reqEndpoint       = Requirement{"endpoint", "WC-1.4", "Calls are POSTs to {callbackBaseUrl}/v1/tasks/{taskId}/started, heartbeat and completed."}
	reqJSON           = Requirement{"json", "WC-3.0.1", "A body is one JSON object with Content-Type application/json."}
	reqAttempt        = Requirement{"attempt", "WC-7.1", "Every call has the attempt of the envelope."}
	reqWorkerID       = Requirement{"worker-id", "WC-3.0.2", "Every call has the same workerId."}
	reqTimes          = Requirement{"times", "WC-3.0.3", "startedAt, heartbeatAt and completedAt are the current time as RFC 3339 with a zone."}
	reqProgress       = Requirement{"progress", "WC-3.2.2", "progressPct is a number from 0 to 100, and message is a string."}
	reqInterval       = Requirement{"interval", "WC-4.4", "A worker sends a heartbeat at every heartbeatIntervalMs."}
	reqAlive          = Requirement{"alive", "WC-4.9", "The time between two calls is at most heartbeatTimeoutMs."}
	reqRetry          = Requirement{"heartbeat-retry", "WC-4.5", "A worker retries a heartbeat that failed and continues its work."}
	reqBackoff        = Requirement{"backoff", "WC-4.5", "A worker retries heartbeats with exponential backoff."}
	reqExpired        = Requirement{"heartbeat-410", "WC-4.6", "A worker aborts at once if a heartbeat is answered with 410."}
	reqCancel         = Requirement{"cancel", "WC-5.5", "After shouldCancel a worker stops and sends completed with CANCELLED within the grace period."}
	reqSIGTERM        = Requirement{"sigterm", "WC-5.12", "A worker that announced handlesSigterm treats SIGTERM after a cancel request as the cancel signal."}
	reqCompleted      = Requirement{"completed", "WC-3.3.1", "A worker sends completed when it ends, with outcome SUCCEEDED, FAILED or CANCELLED."}
	reqOnce           = Requirement{"completed-once", "WC-3.3.14", "A worker makes no call after completed was accepted."}
	reqUnchanged      = Requirement{"completed-unchanged", "WC-3.3.13", "A completed that is repeated has the same result."}
	reqRefused        = Requirement{"completed-409", "WC-3.3.14", "A worker does not repeat completed after 409."}
	reqError          = Requirement{"error", "WC-6.1", "FAILED has an error with a category of the contract and a message."}
	reqOutput         = Requirement{"output", "WC-10.2", "A worker that sends output numbers its chunks without gaps, each base64 of at most 32 KiB of one stream."}
	reqEnds           = Requirement{"ends", "WC-3.3.14", "The process ends after completed was answered."}
)

// The requirements of the export contract for a worker that only uses CALLBACK_URL.
var (
	reqCallback       = Requirement{"callback", "EC-8.1", "A worker posts its result to CALLBACK_URL once, as one JSON object with task_id, batch_id and status success or error."}
	reqCallbackOutput = Requirement{"callback-output", "EC-8.2", "output_r2_key is exports/{task_id}/{output_file_name}, with its size."}
	reqCallbackError  = Requirement{"callback-error", "EC-8.5", "status error has the error in words."}
	reqCallbackSecret = Requirement{"callback-secret", "WC-2.12", "A worker does not print CALLBACK_URL or the bucket's secret key."}
	reqCallbackEnds   = Requirement{"callback-ends", "EC-9.2", "The process ends after the callback."}
)

// The notes on behaviour that the contracts leave open, and on Sortie's extensions. A worker
// that does not use an extension conforms.
var (
	noteRenewal       = Requirement{"note-renewal", "WC-2.10", "Extension: the token is replaced by the taskToken in the answer to a heartbeat."}
	noteRepeat        = Requirement{"note-completed-retry", "WC-3.3.13", "Extension: completed is repeated if its answer was lost or was 503."}
	noteWhole         = Requirement{"note-whole-progress", "WC-3.2.2", "progressPct is a whole number; fractions are rounded."}
	noteStartedRetry  = Requirement{"note-started-retry", "WC-3.1.1", "started is retried if the control plane does not answer."}
	noteSIGTERM       = Requirement{"note-sigterm", "WC-5.9", "started announces handlesSigterm. Otherwise SIGTERM is sent after five sixths of the grace period."}
	noteProgress      = Requirement{"note-progress", "WC-3.2.2", "Heartbeats report the progress."}
	noteMetrics       = Requirement{"note-metrics", "WC-3.3.5", "completed has metrics."}
	noteUpload        = Requirement{"note-upload", "WC-8.5", "The output or the log is stored at the envelope's URL."}
	notePhase         = Requirement{"note-phase", "WC-5.11", "CANCELLED has its phase or the partial progress."}
	noteCallbackRetry = Requirement{"note-callback-retry", "EC-8.7", "The callback is repeated if its answer was lost."}
)

// Mark is the result of a check.
type Mark string

// The marks. A worker with a Failed or Unproven verdict does not conform.
const (
	Passed   Mark = "pass"
	Failed   Mark = "fail"
	Unproven Mark = "unproven"
	Note     Mark = "note"
)

// Verdict is the result of checking one requirement in one scenario.
type Verdict struct {
	Scenario string `json:"scenario"`
	Requirement
	Mark Mark `json:"mark"`
	// Detail describes the observation. It is empty for Passed.
	Detail string `json:"detail,omitempty"`
	// Also lists later scenarios that failed for the same reason.
	Also []string `json:"also,omitempty"`

	// cause is equal in verdicts with the same reason. Without a cause, verdicts of the same
	// requirement have the same reason.
	cause string
}

func (v Verdict) failed() bool { return v.Mark == Failed || v.Mark == Unproven }

// Report is the result of Check.
type Report struct {
	Conforms bool `json:"conforms"`
	// Contract is "worker", or "export" for a worker that only uses CALLBACK_URL.
	Contract string    `json:"contract"`
	Verdicts []Verdict `json:"verdicts"`
	// Skipped lists the scenarios that did not run, because the worker made no call in the
	// first one, or because they belong to the other contract.
	Skipped []string `json:"skipped,omitempty"`
}

// Failures returns the verdicts that prevent conformance.
func (r Report) Failures() []Verdict {
	var list []Verdict
	for _, v := range r.Verdicts {
		if v.failed() {
			list = append(list, v)
		}
	}
	return list
}

// add adds the verdicts of a scenario and returns the new ones. A failure with the same reason
// as an earlier one is added to that.
func (r *Report) add(verdicts []Verdict) []Verdict {
	var added []Verdict
	for _, v := range verdicts {
		earlier := slices.IndexFunc(r.Verdicts, func(e Verdict) bool { return e.failed() && v.failed() && e.reason() == v.reason() })
		if earlier < 0 {
			added = append(added, v)
			r.Verdicts = append(r.Verdicts, v)
			continue
		}
		if e := &r.Verdicts[earlier]; e.Scenario != v.Scenario && !slices.Contains(e.Also, v.Scenario) {
			e.Also = append(e.Also, v.Scenario)
		}
	}
	return added
}

func (v Verdict) reason() string {
	if v.cause != "" {
		return v.cause
	}
	return v.Name
}
