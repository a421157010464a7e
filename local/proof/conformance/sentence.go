package conformance

// Sentence is one thing that the contract asks of a worker.
type Sentence struct {
	// Name is for programs.
	Name string `json:"name"`
	// Where is its id in shared/contract/worker.md.
	Where string `json:"where"`
	// Text says it.
	Text string `json:"text"`
}

// The sentences that are judged.
var (
	sentenceStarted        = Sentence{"started", "WC-3.1.1", "A worker sends started when it begins, and before anything else."}
	sentenceStartedRefused = Sentence{"started-409", "WC-3.1.5", "A worker aborts where started is answered with 409."}
	sentenceBearer         = Sentence{"bearer", "WC-2.1", "Every call carries the task token as Authorization: Bearer, and in no other place."}
	sentenceSecret         = Sentence{"secret", "WC-2.12", "The token and presigned addresses are in no output of the worker."}
	sentenceBucket         = Sentence{"bucket", "WC-2.12", "The token goes to the control plane alone, not to the bucket."}
	sentenceAddress        = Sentence{"address", "WC-1.4", "Calls are POSTs to {callbackBaseUrl}/v1/tasks/{taskId}/started, heartbeat and completed."}
	sentenceJSON           = Sentence{"json", "WC-3.0.1", "A body is one JSON object, with Content-Type application/json."}
	sentenceAttempt        = Sentence{"attempt", "WC-7.1", "Every call says the attempt of the envelope."}
	sentenceWorkerID       = Sentence{"worker-id", "WC-3.0.2", "Every call says the same workerId."}
	sentenceTimes          = Sentence{"times", "WC-3.0.3", "startedAt, heartbeatAt and completedAt are RFC 3339 with a zone, and the present."}
	sentenceProgress       = Sentence{"progress", "WC-3.2.2", "progressPct is a whole number from 0 to 100, message a text."}
	sentenceInterval       = Sentence{"interval", "WC-4.4", "A heartbeat is sent at every heartbeatIntervalMs."}
	sentenceAlive          = Sentence{"alive", "WC-4.9", "No two calls are further apart than heartbeatTimeoutMs."}
	sentenceRetry          = Sentence{"heartbeat-retry", "WC-4.5", "A heartbeat that fails is tried again, and the work goes on."}
	sentenceBackoff        = Sentence{"backoff", "WC-4.5", "Failed heartbeats are tried again with exponential backoff, not at once."}
	sentenceGone           = Sentence{"heartbeat-410", "WC-4.6", "A worker aborts at once where a heartbeat is answered with 410."}
	sentenceCancel         = Sentence{"cancel", "WC-5.5", "After shouldCancel a worker stops and sends completed with CANCELLED, within the grace period."}
	sentenceSigterm        = Sentence{"sigterm", "WC-5.12", "A worker that says handlesSigterm ends as on a cancel when it gets SIGTERM for one."}
	sentenceRenewal        = Sentence{"renewal", "WC-2.9", "A taskToken in the answer to a heartbeat replaces the one before."}
	sentenceCompleted      = Sentence{"completed", "WC-3.3.1", "A worker sends completed when it ends, with one outcome: SUCCEEDED, FAILED or CANCELLED."}
	sentenceOnce           = Sentence{"completed-once", "WC-3.3.14", "Nothing is sent after completed was accepted."}
	sentenceAgain          = Sentence{"completed-retry", "WC-3.3.13", "A completed whose answer was lost, or was 503, is sent again as it was."}
	sentenceLate           = Sentence{"completed-409", "WC-3.3.14", "A completed that is answered with 409 is not sent again."}
	sentenceError          = Sentence{"error", "WC-6.1", "FAILED has an error with a category of the contract and a message."}
	sentenceTolerant       = Sentence{"ends", "WC-3.3.14", "The process ends after completed was answered."}
	noteStartedRetry       = Sentence{"note-started-retry", "WC-3.1.1", "started is tried again where the control plane does not answer."}
	noteSigterm            = Sentence{"note-sigterm", "WC-5.9", "started says handlesSigterm: without it SIGTERM comes only when five sixths of the grace period are over."}
	noteProgress           = Sentence{"note-progress", "WC-3.2.2", "Heartbeats tell the progress."}
	noteMetrics            = Sentence{"note-metrics", "WC-3.3.5", "completed has metrics."}
	noteUpload             = Sentence{"note-upload", "WC-8.5", "The output or the log is put where the envelope says."}
	notePhase              = Sentence{"note-phase", "WC-5.11", "CANCELLED says its phase or the partial progress."}
)

// Mark is how a sentence was judged.
type Mark string

// The marks. Broken and Unproven are failures.
const (
	Kept     Mark = "kept"
	Broken   Mark = "broken"
	Unproven Mark = "unproven"
	Noted    Mark = "note"
)

// Verdict is one sentence, judged in one scenario.
type Verdict struct {
	Scenario string `json:"scenario"`
	Sentence
	Mark Mark `json:"mark"`
	// Detail says what was seen; empty where it was kept.
	Detail string `json:"detail,omitempty"`
}

// Report is what Check has found.
type Report struct {
	Conforms bool      `json:"conforms"`
	Verdicts []Verdict `json:"verdicts"`
}

// Failures are the verdicts that keep a worker from conforming.
func (r Report) Failures() []Verdict {
	var list []Verdict
	for _, v := range r.Verdicts {
		if v.Mark == Broken || v.Mark == Unproven {
			list = append(list, v)
		}
	}
	return list
}
