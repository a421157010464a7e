//go:build unix

package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

// uploadLog stores the captured output, which could not be sent. A failure is logged only. After a cancel
// the upload may take an eighth of the grace period.
func (w *wrapper) uploadLog(ctx context.Context, t *worker.Task, log *capture) {
	text := log.String()
	if w.settings.noLog || text == "" {
		return
	}
	limit := logTimeout
	if ctx.Err() != nil {
		limit = min(limit, t.Grace()/8)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := t.UploadLog(ctx, strings.NewReader(text), int64(len(text))); err != nil && !errors.Is(err, worker.ErrNoUpload) {
		w.log.WarnContext(ctx, "cannot store the log", "why", err.Error())
	}
}

// uploadOutput stores the file that the program wrote.
func (w *wrapper) uploadOutput(ctx context.Context, t *worker.Task) error {
	// A named pipe without a writer would block the open.
	file, err := os.OpenFile(w.settings.output, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return worker.Fail(contract.CategoryUserCode, false, fmt.Errorf("the program succeeded without writing its output: %w", err))
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return worker.Fail(contract.CategoryUserCode, false, errors.Join(errors.New("the output is not a regular file"), err))
	}
	return t.UploadOutput(ctx, file, info.Size(), w.settings.contentType)
}
