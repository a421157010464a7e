// Package fetch saves a task's output.
//
// A file appears complete or not at all. An existing file is kept, unless its content is the
// same or Job.Force is set. After a broken connection the download resumes if the bytes are the
// same (a strong ETag); otherwise it restarts. The length is verified.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
)

// outage is the time for which an unreachable server is retried during a download.
const outage = time.Minute

// idleLimit is the number of consecutive connections that may end without progress.
const idleLimit = 5

// Job describes the download of one output.
type Job struct {
	Client *client.Client
	TaskID string
	// Format, such as "mods", is inserted into the file name that the server proposes. Empty
	// keeps that name.
	Format string
	// Force allows the replacement of an existing file with other content.
	Force bool
	// Size is the expected size in bytes, negative if unknown.
	Size int64
	// Progress, which may be nil, receives the number of bytes so far and in
	// total (-1: unknown).
	Progress func(done, total int64)
	// OnRetry, which may be nil, receives each failure that is retried.
	OnRetry func(error)
}

// sink is a destination of a download that may restart.
type sink interface {
	io.Writer
	// Restart discards everything written so far.
	Restart() error
}

// ToWriter writes the output to w and returns its length. After a failure a part of it may be
// written.
func ToWriter(ctx context.Context, job Job, w io.Writer) (int64, error) {
	first, err := job.Client.Open(ctx, job.TaskID, 0, "")
	if err != nil {
		return 0, err
	}
	return job.copy(ctx, first, stream{w})
}

// stream is a sink that cannot restart.
type stream struct{ io.Writer }

func (stream) Restart() error {
	return errors.New("the connection broke and the server cannot resume the download; save to a file instead")
}

// copy writes the whole output. out is the first response.
func (j Job) copy(ctx context.Context, out *client.Output, to sink) (int64, error) {
	total := j.Size
	if out.Size >= 0 {
		total = out.Size
	}
	if j.Size >= 0 && total != j.Size {
		return 0, errors.Join(fmt.Errorf("the server sends %d bytes, want %d", total, j.Size), out.Body.Close())
	}
	m := &meter{to: to, total: total, progress: j.Progress}
	again := j.Client.WithRetry(outage, j.OnRetry)
	furthest, idle := int64(0), 0
	for {
		_, err := io.Copy(m, out.Body)
		_ = out.Body.Close()
		switch {
		case m.failed != nil:
			return m.done, fmt.Errorf("cannot write the output: %w", m.failed)
		case ctx.Err() != nil:
			return m.done, ctx.Err()
		case total >= 0 && m.done > total:
			return m.done, fmt.Errorf("the server sends more than the announced %d bytes", total)
		case err == nil && (total < 0 || m.done == total):
			return m.done, nil
		case err == nil:
			err = io.ErrUnexpectedEOF
		}
		if idle++; m.done > furthest {
			furthest, idle = m.done, 0
		}
		if idle >= idleLimit {
			return m.done, fmt.Errorf("the download breaks off at byte %d of %d, %d times in a row: %w", m.done, total, idleLimit, err)
		}
		if j.OnRetry != nil {
			j.OnRetry(fmt.Errorf("the connection broke at byte %d of %d", m.done, total))
		}
		from := m.done
		if out.ETag == "" {
			from = 0
		}
		if out, err = again.Open(ctx, j.TaskID, from, out.ETag); err != nil {
			return m.done, err
		}
		if out.Size >= 0 {
			total, m.total = out.Size, out.Size
		}
		if out.Start != m.done {
			if out.Start != 0 {
				return m.done, errors.Join(fmt.Errorf("the server resumes at byte %d, want %d", out.Start, m.done), out.Body.Close())
			}
			if err := to.Restart(); err != nil {
				return m.done, errors.Join(err, out.Body.Close())
			}
			m.done = 0
		}
	}
}

// meter counts the bytes written and keeps the error of a failed write.
type meter struct {
	to       io.Writer
	done     int64
	total    int64
	progress func(done, total int64)
	failed   error
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.done += int64(n)
	if err != nil {
		m.failed = err
		return n, err
	}
	if m.progress != nil {
		m.progress(m.done, m.total)
	}
	return n, nil
}
