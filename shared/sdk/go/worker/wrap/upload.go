//go:build unix

package wrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// uploadLog stores the captured output, which could not be sent. It only logs a failure. After
// a cancel request the upload may take an eighth of the grace period.
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

// openOutput opens the file that the program wrote. The path of a task is below the working
// folder. The path of a flag comes from the caller of this program, and may be in another
// folder.
func (w *wrapper) openOutput() (*os.File, error) {
	if w.outputOfTask {
		return private.OpenBelow(".", w.settings.output)
	}
	return private.OpenBelow(filepath.Dir(w.settings.output), filepath.Base(w.settings.output))
}

// uploadOutput stores the file that the program wrote.
func (w *wrapper) uploadOutput(ctx context.Context, t *worker.Task) error {
	file, err := w.openOutput()
	if errors.Is(err, fs.ErrNotExist) {
		return worker.Fail(contract.CategoryUserCode, false, fmt.Errorf("the program succeeded without writing its output: %w", err))
	}
	if err != nil {
		return worker.Fail(contract.CategoryUserCode, false, fmt.Errorf("the output cannot be read: %w", err))
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return worker.Fail(contract.CategoryUserCode, false, fmt.Errorf("the output cannot be read: %w", err))
	}
	return t.UploadOutput(ctx, file, info.Size(), w.settings.contentType)
}
