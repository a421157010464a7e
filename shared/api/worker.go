package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/run"
)

// unknownError replaces an empty error text of a worker.
const unknownError = "the worker reported an error without a message"

// Callback validates the body of a callback for the task and returns its
// report.
func Callback(taskID string, body contract.Callback) (run.Report, error) {
	if body.TaskID != "" && body.TaskID != taskID {
		return run.Report{}, fault.Invalid("task_id", "another task, want %s", taskID)
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

// callbackUpload returns the output of a callback; nil if it names none.
func callbackUpload(taskID string, body contract.Callback) (*run.Upload, error) {
	if body.OutputKey == "" && body.OutputFileName == "" && body.OutputFileSize == nil {
		return nil, nil
	}
	if body.OutputFileSize == nil {
		return nil, fault.Invalid("output_file_size", "missing size, want the number of bytes")
	}
	upload := run.Upload{Key: body.OutputKey, FileName: body.OutputFileName, Size: *body.OutputFileSize}
	return &upload, checkUpload(taskID, upload, "output_r2_key", "output_file_name", "output_file_size")
}

// callbackDigest distinguishes a repeated callback from a contradicting one.
// Metrics do not count: a worker that repeats its call may have measured again.
func callbackDigest(body contract.Callback) string {
	size := int64(-1)
	if body.OutputFileSize != nil {
		size = *body.OutputFileSize
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q",
		body.Status, body.OutputKey, body.OutputFileName, size, body.Error))
	return hex.EncodeToString(sum[:16])
}

// Completion validates the body of completed for the task and returns its
// report.
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
	report.Digest = completionDigest(report)
	return report, err
}

// taskOutput returns the object to accept, if the output names one under the
// task's prefix, and the output as the worker sent it.
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
	upload := run.Upload{Key: sent.OutputPath, FileName: sent.FileName}
	if upload.FileName == "" {
		upload.FileName = path.Base(sent.OutputPath)
	}
	if sent.ByteSize == nil {
		return nil, nil, fault.Invalid("output.byteSize", "missing size of an output in the bucket, want the number of bytes")
	}
	upload.Size = *sent.ByteSize
	return &upload, own, checkUpload(taskID, upload, "output.outputPath", "output.fileName", "output.byteSize")
}

// setError copies a worker's error into its report.
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

// completionDigest distinguishes a repeated completion from a contradicting one.
// Metrics do not count, as in callbackDigest.
func completionDigest(report run.Report) string {
	report.Metrics = nil
	text, _ := json.Marshal(report) //nolint:errchkjson // its raw members were JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// checkUpload checks an output that a worker reports. The last three arguments name
// its fields.
func checkUpload(taskID string, u run.Upload, keyField, nameField, sizeField string) error {
	prefix := limit.OutputPrefix(taskID)
	name, inside := strings.CutPrefix(u.Key, prefix)
	if !inside || name == "" || path.Clean("/"+name) != "/"+name || len(u.Key) > limit.ObjectKey || !limit.Printable(name) {
		return fault.Invalid(keyField, "key outside the task's prefix, want a key under %s", prefix)
	}
	if u.FileName == "" || len(u.FileName) > limit.FileName || strings.ContainsAny(u.FileName, `/\`) || !limit.Printable(u.FileName) {
		return fault.Invalid(nameField, "malformed file name, want 1 to %d bytes without slashes and control characters", limit.FileName)
	}
	if u.Size < 0 {
		return fault.Invalid(sizeField, "%d is out of range, want the number of bytes", u.Size)
	}
	return nil
}

// bounded returns JSON that a worker defines, nil for null. JSON longer than
// limit.Object is replaced by its length.
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
