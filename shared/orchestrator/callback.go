package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	metricsLimit  = 16 << 10
)

// Callback takes a worker's last word in the older shape, the export
// contract's. claims are those of the token that came with it. It returns after
// the commit. Faults are the answers of the worker contract; InvalidRequest
// names the field. It needs Executions beside Store.
func (s *Service) Callback(ctx context.Context, claims contract.Claims, body contract.Callback) error {
	r, err := s.ports.Store.Find(ctx, claims.TenantID, claims.TaskID)
	if errors.Is(err, ErrNotFound) {
		return fault.New(fault.NotFound, "there is no such task of the token's tenant, or it has expired")
	}
	if err != nil {
		return fmt.Errorf("cannot find the task: %w", err)
	}
	if claims.RunID != r.ID || claims.WorkspaceID != r.Workspace {
		return fault.New(fault.Forbidden, "the token is for another run")
	}
	report, err := reportOf(r, body)
	if err != nil {
		return err
	}
	_, err = s.applyTo(ctx, r, is(run.Reported{Attempt: claims.Attempt, Report: report}))
	if refused, ok := errors.AsType[*fault.Fault](err); ok {
		s.warn(ctx, r, "a callback was refused", refused)
		return refused
	}
	if err != nil {
		return fmt.Errorf("cannot commit the callback: %w", err)
	}
	return nil
}

// reportOf checks a callback's body and makes the report of it.
func reportOf(r run.Run, body contract.Callback) (run.Report, error) {
	if body.TaskID != "" && body.TaskID != r.TaskID {
		return run.Report{}, fault.Invalid("task_id", "the task of this callback is %s", r.TaskID)
	}
	report := run.Report{Digest: digestOf(body), Metrics: body.Metrics}
	if size := len(body.Metrics); size > metricsLimit {
		report.Metrics = fmt.Appendf(nil, `{"cut":true,"bytes":%d}`, size)
	}
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
	prefix := OutputPrefix(r.TaskID)
	name, inside := strings.CutPrefix(body.OutputKey, prefix)
	if !inside || name == "" || path.Clean("/"+name) != "/"+name || len(body.OutputKey) > 1024 || !clean(name) {
		return nil, fault.Invalid("output_r2_key", "the output of this task lies under %s", prefix)
	}
	fileName := body.OutputFileName
	if fileName == "" || len(fileName) > fileNameLimit || strings.ContainsAny(fileName, `/\`) || !clean(fileName) {
		return nil, fault.Invalid("output_file_name", "a file name has 1 to %d bytes, no slash and no control character", fileNameLimit)
	}
	if body.OutputFileSize == nil || *body.OutputFileSize < 0 {
		return nil, fault.Invalid("output_file_size", "the size is the output's number of bytes")
	}
	return &run.Upload{Key: body.OutputKey, FileName: fileName, Size: *body.OutputFileSize}, nil
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
