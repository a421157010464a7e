package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// unknownError replaces an empty error text of a worker.
const unknownError = "the worker reported an error without a message"

// Callback validates the callback of a run and returns its report. The fault is TaskMismatch if
// task_id or batch_id is not that of the run; absent ones match.
func Callback(r run.Run, body contract.Callback) (run.Report, error) {
	taskID, batchID := r.TaskID, batchOf(r)
	switch {
	case body.TaskID != "" && body.TaskID != taskID:
		return run.Report{}, mismatch("task_id", taskID)
	case body.BatchID != "" && body.BatchID != batchID:
		return run.Report{}, mismatch("batch_id", batchID)
	}
	report := run.Report{Digest: callbackDigest(body), Metrics: bounded(body.Metrics)}
	switch body.Status {
	case contract.StatusSuccess:
		report.Success = true
		upload, err := callbackUpload(taskID, body)
		report.Upload = upload
		return report, err
	case contract.StatusError:
		report.Error = limit.Cut(body.Error, limit.Message)
		if report.Error == "" {
			report.Error = unknownError
		}
		return report, nil
	}
	return run.Report{}, fault.Invalid("status", "unknown status, want %q or %q", contract.StatusSuccess, contract.StatusError)
}

func mismatch(field, want string) error {
	f := fault.New(fault.TaskMismatch, "%s: the callback is of another one, want %s", field, want)
	f.Field = field
	return f
}

// batchOf returns the batch id for clients and workers.
func batchOf(r run.Run) string { return cmp.Or(r.BatchID, contract.BatchSingle) }

// callbackUpload returns the output that a callback names; nil if it names none.
func callbackUpload(taskID string, body contract.Callback) (*run.Upload, error) {
	if body.OutputKey == "" && body.OutputFileName == "" && body.OutputFileSize == nil {
		return nil, nil
	}
	return upload(taskID, "output_r2_key", body.OutputKey, body.OutputFileName, body.OutputFileSize)
}

// callbackDigest distinguishes a repeated callback from a contradicting one. It ignores
// metrics, because a worker may measure again before it repeats the call.
func callbackDigest(body contract.Callback) string {
	size := int64(-1)
	if body.OutputFileSize != nil {
		size = *body.OutputFileSize
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q",
		body.Status, body.OutputKey, body.OutputFileName, size, body.Error))
	return hex.EncodeToString(sum[:16])
}

// Completion validates the completion of a task and returns its report.
func Completion(taskID string, body contract.TaskCompleted) (run.Report, error) {
	report := run.Report{Outcome: run.Outcome(body.Outcome), Metrics: bounded(body.Metrics)}
	var err error
	switch report.Outcome {
	case run.OutcomeSucceeded:
		report.Success = true
		report.Upload, report.Output, err = taskOutput(taskID, body.Output)
	case run.OutcomeFailed:
		err = setError(&report, body.Error)
	case run.OutcomeCancelled:
		report.Phase, report.Partial = limit.Cut(body.CancelledDuringPhase, limit.Phase), bounded(body.PartialProgress)
		report.Error = "the worker was cancelled"
	default:
		err = fault.Invalid("outcome", "unknown outcome, want %s, %s or %s",
			run.OutcomeSucceeded, run.OutcomeFailed, run.OutcomeCancelled)
	}
	report.Exit = programExit(body.Exit)
	report.Digest = completionDigest(report)
	return report, err
}

// programExit returns the reported exit of a program; nil if it is absent or invalid.
func programExit(sent *contract.Exit) *run.Exit {
	if sent == nil || sent.Code < 0 || sent.Code > 255 || sent.Signal < 0 || sent.Signal > 127 {
		return nil
	}
	return &run.Exit{Code: sent.Code, Signal: sent.Signal}
}

// taskOutput returns the object to accept, if the output names one, and the output as sent by
// the worker. The key must have the task's prefix. An output with a URL as path has no object.
func taskOutput(taskID string, sent *contract.TaskOutput) (*run.Upload, json.RawMessage, error) {
	if sent == nil {
		return nil, nil, nil
	}
	text, err := json.Marshal(sent)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode the output: %w", err)
	}
	own := bounded(text)
	if sent.OutputPath == "" || strings.Contains(sent.OutputPath, "://") {
		return nil, own, nil
	}
	object, err := upload(taskID, "output.outputPath", sent.OutputPath, sent.FileName, sent.ByteSize)
	if err != nil {
		return nil, own, err
	}
	if sent.Digest != "" && !sha256Digest.MatchString(sent.Digest) {
		return nil, own, fault.Invalid("output.digest", "malformed digest, want sha256: and 64 hexadecimal digits in lower case")
	}
	object.Digest = sent.Digest
	return object, own, nil
}

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// setError copies the worker's error to the report.
func setError(report *run.Report, sent *contract.TaskError) error {
	if sent == nil {
		return fault.Invalid("error", "missing error for the outcome FAILED")
	}
	category := fault.Category(sent.Category)
	if !slices.Contains(fault.Categories(), category) {
		return fault.Invalid("error.category", "unknown category, want one of %s", strings.Join(contract.Categories(), ", "))
	}
	report.Category, report.Retryable = category, sent.Retryable
	report.Error = limit.Cut(sent.Message, limit.Message)
	if report.Error == "" {
		report.Error = unknownError
	}
	report.StackTrace = limit.Cut(sent.StackTrace, limit.StackTrace)
	return nil
}

// completionDigest distinguishes a repeated completion from a contradicting one. It ignores
// metrics, as callbackDigest does.
func completionDigest(report run.Report) string {
	report.Metrics = nil
	text, _ := json.Marshal(report) //nolint:errchkjson // its raw members were JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// upload returns the output that a worker reports. A key outside the task's prefix is refused
// with its field. An unusable file name is replaced, and an invalid size is unknown: the object
// itself has both.
func upload(taskID, field, key, fileName string, size *int64) (*run.Upload, error) {
	prefix := limit.OutputPrefix(taskID)
	name, inside := strings.CutPrefix(key, prefix)
	if !inside || name == "" || path.Clean("/"+name) != "/"+name || len(key) > limit.ObjectKey || !limit.Printable(name) {
		return nil, fault.Invalid(field, "key outside the task's prefix, want a key under %s", prefix)
	}
	u := &run.Upload{Key: key, FileName: defaultFileName, Size: run.SizeUnknown}
	for _, usable := range []string{fileName, path.Base(key)} {
		if usable != "" && len(usable) <= limit.FileName && !strings.ContainsAny(usable, `/\`) && limit.Printable(usable) {
			u.FileName = usable
			break
		}
	}
	if size != nil && *size >= 0 {
		u.Size = *size
	}
	return u, nil
}

// defaultFileName is the file name of an output without a usable one.
const defaultFileName = "output"

// bounded returns JSON that a worker defines; nil for null. JSON longer than limit.Object is
// replaced by an object with its length.
func bounded(text json.RawMessage) json.RawMessage {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0, string(text) == "null":
		return nil
	case len(text) > limit.Object:
		return fmt.Appendf(nil, `{"cut":true,"bytes":%d}`, len(text))
	}
	return text
}
