package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// logFlags select a part of a log.
type logFlags struct {
	attempt, tail int
	since, stream string
	follow        bool
	timestamps    bool
}

func (a *app) logs() *cobra.Command {
	f := logFlags{tail: -1}
	c := &cobra.Command{
		Use:   "logs RUN",
		Short: "Show the output of a run's worker",
		Long: `Show the output of a run's worker: of its last attempt, or of the one that
--attempt names. With -f the command continues with that attempt and all later ones
until the run ends. It connects again by itself.

--timestamps puts the time of its output before each line, or "-" if it is unknown. A
worker sends its output in pieces: all lines of a piece have the time of its first byte.

--since needs lines with an RFC 3339 time, as --timestamps and most log libraries write
it; a line without one belongs to the line before it.`,
		Example: `  sortie logs export_mods_1704857234567_a3f8c2d1
  sortie logs export_mods_1704857234567_a3f8c2d1 --attempt 1 --tail 20
  sortie logs export_mods_1704857234567_a3f8c2d1 --since 10m
  sortie logs -f export_mods_1704857234567_a3f8c2d1`,
		ValidArgsFunction: a.runIDs(),
	}
	flags := c.Flags()
	flags.IntVar(&f.attempt, "attempt", 0, "number of the attempt; 0 is the last one")
	flags.IntVar(&f.tail, "tail", -1, "only the last lines, so many; -1 is all")
	flags.StringVar(&f.since, "since", "", "only lines since then: a duration such as 10m, or an RFC 3339 time")
	flags.BoolVarP(&f.follow, "follow", "f", false, "continue until the run ends")
	flags.BoolVar(&f.timestamps, "timestamps", false, "put the time before each line")
	flags.StringVar(&f.stream, "stream", "", "only stdout or stderr; by default both")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if f.attempt < 0 {
			return cli.Wrong("--attempt: %d is out of range, want 1 or more, or 0 for the last", f.attempt)
		}
		if f.tail < -1 {
			return cli.Wrong("--tail: %d is out of range, want 0 or more, or -1 for all", f.tail)
		}
		if f.stream != "" && f.stream != "stdout" && f.stream != "stderr" {
			return cli.Wrong("--stream: unknown stream %q, want stdout or stderr", f.stream)
		}
		since, err := sinceTime(f.since, a.Clock.Now())
		if err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		return a.showLog(ctx, c, args[0], f, since)
	})
	return c
}

// sinceTime parses a duration before now, or an RFC 3339 time. Empty means the zero time.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, cli.Wrong("--since: malformed value %q, want a duration such as 10m or a time such as %s", text, now.UTC().Format(time.RFC3339))
}

// showLog writes a log. With --follow it waits for a log that does not exist yet, and writes
// the added lines.
func (a *app) showLog(ctx context.Context, c *client.Client, task string, f logFlags, since time.Time) error {
	from := client.LogPosition{Attempt: f.attempt, Stream: f.stream}
	out := display.NewOutput(a.Stdout)
	text := stamper{on: f.timestamps}
	if !f.follow || f.tail >= 0 || !since.IsZero() {
		log, err := c.Log(ctx, task, from)
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusNotFound && !p.Foreign {
			if err = a.noLog(ctx, c, task, f.attempt, err); err != nil && !(f.follow && exitCode(err) == cli.ExitRunning) {
				return err
			}
			err = nil
		}
		if err != nil {
			return err
		}
		shown, timed := display.Part(text.of(log.Lines...), f.tail, since)
		if !timed {
			return cli.Wrong("--since: the log has no line with an RFC 3339 time")
		}
		if err := out.Print(shown); err != nil {
			return err
		}
		if n := len(log.Lines); n > 0 {
			from.Attempt, from.Offset = log.Lines[n-1].Attempt, log.Lines[n-1].Next
		}
	}
	if !f.follow {
		return out.Close()
	}
	c = a.patient(c, task)
	err := c.FollowLog(ctx, task, &from, func(line contract.LogLine) error { return out.Print(text.of(line)) })
	return errors.Join(err, out.Close())
}

// stamper returns the text of a log, with the time before each line if on.
type stamper struct {
	on bool
	// within reports that the last text has ended within a line.
	within bool
}

// of returns the concatenated text of the pieces.
func (s *stamper) of(pieces ...contract.LogLine) []byte {
	var text []byte
	for _, piece := range pieces {
		if !s.on {
			text = append(text, lineText(piece)...)
			continue
		}
		stamp := "- "
		if !piece.At.IsZero() {
			stamp = piece.At.UTC().Format("2006-01-02T15:04:05.000Z ")
		}
		for line := range bytes.Lines(lineText(piece)) {
			if !s.within {
				text = append(text, stamp...)
			}
			text, s.within = append(text, line...), !bytes.HasSuffix(line, []byte("\n"))
		}
	}
	return text
}

// lineText returns the text of a piece, or a mark for missing bytes.
func lineText(piece contract.LogLine) []byte {
	if piece.Cut > 0 {
		return limit.CutMark(piece.Cut)
	}
	return piece.Data
}

// noLog returns the error for a log that does not exist. It may appear later if the run has not
// ended.
func (a *app) noLog(ctx context.Context, c *client.Client, task string, attempt int, missing error) error {
	status, err := c.Status(ctx, task, 0)
	if found, failed := c.Task(ctx, task); failed == nil && found.Inference != nil {
		return cli.Advised{
			Err: fmt.Errorf("the run %s has a stream of tokens, and no log", task), Code: cli.ExitGone, TaskID: task,
			Hint: fmt.Sprintf("GET /v1/tasks/%s/stream has its answer", task),
		}
	}
	if err != nil || status.Status != contract.StatusProcessing || attempt > 0 && attempt < status.Attempt {
		return missing
	}
	return cli.Advised{
		Err: fmt.Errorf("the run %s has no log yet: it is %s", task, status.State), Code: cli.ExitRunning, TaskID: task,
		Hint: fmt.Sprintf("%q waits for it", a.Name+" logs -f "+task),
	}
}

func exitCode(err error) int {
	if a, ok := errors.AsType[cli.Advised](err); ok {
		return a.Code
	}
	return cli.ExitFailed
}
