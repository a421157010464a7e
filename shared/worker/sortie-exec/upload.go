//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

// uploadLog stores what was kept of the output. A log that cannot be stored
// fails nothing; after a cancel it may take a tenth of the grace period.
func (w *wrapper) uploadLog(ctx context.Context, t *worker.Task, log *capture) {
	text := log.String()
	if w.settings.noLog || text == "" {
		return
	}
	limit := logPatience
	if ctx.Err() != nil {
		limit = min(limit, t.Grace()/8)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := t.UploadLog(ctx, strings.NewReader(text), int64(len(text))); err != nil && !errors.Is(err, worker.ErrNoUpload) {
		w.log.WarnContext(ctx, "the log is not stored", "why", err.Error())
	}
}

// uploadOutput stores the file that the program has written.
func (w *wrapper) uploadOutput(ctx context.Context, t *worker.Task) error {
	file, err := os.Open(w.settings.output)
	if err != nil {
		return worker.Fail(contract.CategoryUserCode, false, fmt.Errorf("the program succeeded without its output: %w", err))
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return worker.Fail(contract.CategoryUserCode, false, errors.Join(errors.New("the output is no file"), err))
	}
	return t.UploadOutput(ctx, file, info.Size(), w.settings.contentType)
}
