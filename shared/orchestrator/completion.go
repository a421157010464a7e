package orchestrator

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
	"github.com/sortie-dev/sortie/shared/run"
)

// The limits of a completion's other texts, in bytes; see messageLimit.
const (
	stackTraceLimit = 16 << 10
	phaseLimit      = 255
	ownObjectLimit  = 16 << 10
)

// completionOf checks a completion's body and makes the report of it.
func completionOf(r run.Run, body contract.TaskCompleted) (run.Report, error) {
	report := run.Report{Outcome: run.Outcome(body.Outcome), Metrics: bounded(body.Metrics)}
	var err error
	switch report.Outcome {
	case run.OutcomeSucceeded:
		report.Success = true
		report.Upload, report.Output, err = outputOf(r, body.Output)
	case run.OutcomeFailed:
		err = errorOf(&report, body.Error)
	case run.OutcomeCancelled:
		report.Phase, report.Partial = Cut(body.CancelledDuringPhase, phaseLimit), bounded(body.PartialProgress)
		report.Error = "the worker was cancelled"
	default:
		err = fault.Invalid("outcome", "an outcome is %s, %s or %s",
			contract.OutcomeSucceeded, contract.OutcomeFailed, contract.OutcomeCancelled)
	}
	report.Digest = digestOfReport(report)
	return report, err
}

// outputOf is the object to keep, where the output names one under the task's
// prefix; any other output is the worker's own affair.
func outputOf(r run.Run, told *contract.TaskOutput) (*run.Upload, json.RawMessage, error) {
	if told == nil {
		return nil, nil, nil
	}
	text, err := json.Marshal(told)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write the output: %w", err)
	}
	own := bounded(text)
	if told.OutputPath == "" || strings.Contains(told.OutputPath, "://") {
		return nil, own, nil
	}
	upload := run.Upload{Key: told.OutputPath, FileName: told.FileName}
	if upload.FileName == "" {
		upload.FileName = path.Base(told.OutputPath)
	}
	if told.ByteSize == nil {
		return nil, nil, fault.Invalid("output.byteSize", "the size of an output that is to be kept is its number of bytes")
	}
	upload.Size = *told.ByteSize
	return &upload, own, checkUpload(r, upload, "output.outputPath", "output.fileName", "output.byteSize")
}

// errorOf puts why a worker failed into its report.
func errorOf(report *run.Report, told *contract.TaskError) error {
	if told == nil {
		return fault.Invalid("error", "a failure has an error")
	}
	if !slices.Contains(contract.Categories(), told.Category) {
		return fault.Invalid("error.category", "a category is one of %s", strings.Join(contract.Categories(), ", "))
	}
	report.Category, report.Retryable = fault.Category(told.Category), told.Retryable
	report.Error = Cut(told.Message, messageLimit)
	if report.Error == "" {
		report.Error = "the worker reported an error without saying which"
	}
	report.StackTrace = Cut(told.StackTrace, stackTraceLimit)
	return nil
}

// bounded takes a worker's own JSON as it is, null for none. Where it is too
// long, it is replaced by how long it was.
func bounded(text json.RawMessage) json.RawMessage {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0, string(text) == "null":
		return nil
	case len(text) > ownObjectLimit:
		return fmt.Appendf(nil, `{"cut":true,"bytes":%d}`, len(text))
	}
	return text
}

// digestOfReport tells a repeated completion from one that says something else.
// Metrics do not count: a worker that repeats itself may have measured again.
func digestOfReport(report run.Report) string {
	report.Metrics = nil
	text, _ := json.Marshal(report) //nolint:errchkjson // what is raw in it was JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
