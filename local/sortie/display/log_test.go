package display_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sortie-dev/sortie/local/sortie/display"
)

func TestLogLineHasTimeLevelMessageRunAndAttempt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := display.NewLogHandler(&out, slog.LevelInfo)
	record := slog.NewRecord(time.Date(2026, 11, 21, 9, 0, 0, 0, time.Local), slog.LevelInfo, "job.attempt_ended", 0)
	record.AddAttrs(
		slog.String("state", "Terminating"), slog.Int("attempt", 2), slog.String("correlation_id", "0b5f"),
		slog.String("fault", "WORKER_LOST"), slog.String("message", "it exited"), slog.Int("bytes", 7),
	)
	if err := h.WithAttrs([]slog.Attr{slog.String("task_id", "export_mods_1")}).Handle(context.Background(), record); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "09:00:00 INFO  job.attempt_ended  export_mods_1 #2  WORKER_LOST: it exited  bytes=7\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLogLineFits100Columns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(display.NewLogHandler(&out, slog.LevelInfo))
	log.Debug("left out")
	log.Warn("a part of the sweep failed", "error", errors.New("line one\nline\x1b[2J two"), "more", strings.Repeat("x", 400))
	got := out.String()
	if strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") || runewidth.StringWidth(strings.TrimSpace(got)) > 100 {
		t.Errorf("got %q, want one line of at most 100 columns", got)
	}
	if !strings.Contains(got, "WARN  a part of the sweep failed: line one line [2J two") {
		t.Errorf("got %q, want the error after the message", got)
	}
}
