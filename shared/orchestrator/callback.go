package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// The limits of what a worker may tell. Longer texts are cut, and the cut is
// marked: a completion is never refused for its size.
const (
	messageLimit  = 2 << 10
	fileNameLimit = 255
)

// Callback takes a worker's last word in the older shape, the export
// contract's: the same as Completed, by a worker without a name. bearer is what
// the token that came with it says. It needs Executions beside Store.
func (s *Service) Callback(ctx context.Context, bearer Bearer, body contract.Callback) error {
	r, err := s.ofBearer(ctx, bearer)
	if err != nil {
		return err
	}
	report, err := reportOf(r, body)
	if err != nil {
		return err
	}
	after, err := s.applyTo(ctx, r, is(run.Reported{Attempt: bearer.Attempt, Report: report}))
	if err != nil {
		return s.refused(ctx, after, bearer.Attempt, err, "commit the callback")
	}
	return nil
}

// reportOf checks a callback's body and makes the report of it.
func reportOf(r run.Run, body contract.Callback) (run.Report, error) {
	if body.TaskID != "" && body.TaskID != r.TaskID {
		return run.Report{}, fault.Invalid("task_id", "the task of this callback is %s", r.TaskID)
	}
	report := run.Report{Digest: digestOf(body), Metrics: bounded(body.Metrics)}
	switch body.Status {
	case contract.StatusSuccess:
		report.Success = true
		upload, err := uploadOf(r, body)
		report.Upload = upload
		return report, err
	case contract.StatusError:
		report.Error = Cut(body.Error, messageLimit)
		if report.Error == "" {
			report.Error = "the worker reported an error without saying which"
		}
		return report, nil
	}
	return run.Report{}, fault.Invalid("status", `the status of a callback is "success" or "error"`)
}

// uploadOf is the output that a callback tells; nil for a worker that leaves
// none.
func uploadOf(r run.Run, body contract.Callback) (*run.Upload, error) {
	if body.OutputKey == "" && body.OutputFileName == "" && body.OutputFileSize == nil {
		return nil, nil
	}
	if body.OutputFileSize == nil {
		return nil, fault.Invalid("output_file_size", "the size is the output's number of bytes")
	}
	upload := run.Upload{Key: body.OutputKey, FileName: body.OutputFileName, Size: *body.OutputFileSize}
	return &upload, checkUpload(r, upload, "output_r2_key", "output_file_name", "output_file_size")
}

// checkUpload holds an output that a worker tells to what may be kept; the last
// three name its fields.
func checkUpload(r run.Run, u run.Upload, keyField, nameField, sizeField string) error {
	prefix := OutputPrefix(r.TaskID)
	name, inside := strings.CutPrefix(u.Key, prefix)
	if !inside || name == "" || path.Clean("/"+name) != "/"+name || len(u.Key) > 1024 || !clean(name) {
		return fault.Invalid(keyField, "the output of this task lies under %s", prefix)
	}
	if u.FileName == "" || len(u.FileName) > fileNameLimit || strings.ContainsAny(u.FileName, `/\`) || !clean(u.FileName) {
		return fault.Invalid(nameField, "a file name has 1 to %d bytes, no slash and no control character", fileNameLimit)
	}
	if u.Size < 0 {
		return fault.Invalid(sizeField, "the size is the output's number of bytes")
	}
	return nil
}

// clean says whether a text is UTF-8 without control characters.
func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// Cut cuts a text to at most limit bytes at a character, and marks the cut.
func Cut(text string, limit int) string {
	const mark = " … (cut)"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// digestOf tells a repeated callback from one that says something else. Metrics
// do not count: a worker that repeats itself may have measured again.
func digestOf(body contract.Callback) string {
	size := int64(-1)
	if body.OutputFileSize != nil {
		size = *body.OutputFileSize
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q",
		body.Status, body.OutputKey, body.OutputFileName, size, body.Error))
	return hex.EncodeToString(sum[:16])
}
