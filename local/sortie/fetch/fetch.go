// Package fetch saves a task's output.
//
// It promises that a file appears whole or not at all, under the name that was
// asked for or the one that the server serves, and that what it had before
// stays until then. A connection that breaks is made again and goes on where
// it was, if the bytes are still those of the first one (a strong ETag);
// otherwise it begins again. The length is verified.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
)

// patience is how long a server that does not answer is borne in the middle of
// a download.
const patience = time.Minute

// fruitless is how many connections in a row may end without getting further
// than any before.
const fruitless = 5

// Job is one output to save.
type Job struct {
	Client *client.Client
	TaskID string
	// Size is what is expected, in bytes; negative where it is not known.
	Size int64
	// Progress is told how many bytes there are, and will be (-1: unknown).
	// It may be nil.
	Progress func(done, total int64)
	// Trouble is told of each failure that is borne. It may be nil.
	Trouble func(error)
}

// sink is where bytes go, and can go again from the beginning.
type sink interface {
	io.Writer
	// Restart forgets what was written.
	Restart() error
}

// ToWriter writes the output to w and gives its length. What was written
// before a failure stays written.
func ToWriter(ctx context.Context, job Job, w io.Writer) (int64, error) {
	first, err := job.Client.Open(ctx, job.TaskID, 0, "")
	if err != nil {
		return 0, err
	}
	return job.copy(ctx, first, stream{w})
}

// stream is a sink that cannot take anything back.
type stream struct{ io.Writer }

func (stream) Restart() error {
	return errors.New("the connection broke and the server cannot go on where it was; save to a file instead")
}

// copy writes all of an output whose beginning is open.
func (j Job) copy(ctx context.Context, out *client.Output, to sink) (int64, error) {
	total := j.Size
	if out.Size >= 0 {
		total = out.Size
	}
	if j.Size >= 0 && total != j.Size {
		return 0, errors.Join(fmt.Errorf("the server serves %d bytes of an output of %d", total, j.Size), out.Body.Close())
	}
	m := &meter{to: to, total: total, tell: j.Progress}
	again := j.Client.Patient(patience, j.Trouble)
	furthest, idle := int64(0), 0
	for {
		_, err := io.Copy(m, out.Body)
		_ = out.Body.Close() // it was read to its end, or is of no more use
		switch {
		case m.failed != nil:
			return m.done, fmt.Errorf("cannot write the output: %w", m.failed)
		case ctx.Err() != nil:
			return m.done, ctx.Err()
		case total >= 0 && m.done > total:
			return m.done, fmt.Errorf("the server sent more than the %d bytes that it named", total)
		case err == nil && (total < 0 || m.done == total):
			return m.done, nil
		case err == nil:
			err = io.ErrUnexpectedEOF
		}
		if idle++; m.done > furthest {
			furthest, idle = m.done, 0
		}
		if idle >= fruitless {
			return m.done, fmt.Errorf("the download breaks off at byte %d of %d each time: %w", m.done, total, err)
		}
		if j.Trouble != nil {
			j.Trouble(fmt.Errorf("the connection broke at byte %d of %d", m.done, total))
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
				return m.done, errors.Join(errors.New("the server went on at another place than it was asked to"), out.Body.Close())
			}
			if err := to.Restart(); err != nil {
				return m.done, errors.Join(err, out.Body.Close())
			}
			m.done = 0
		}
	}
}

// meter counts what is written, and tells a failure to write from one to read.
type meter struct {
	to     io.Writer
	done   int64
	total  int64
	tell   func(done, total int64)
	failed error
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.done += int64(n)
	if err != nil {
		m.failed = err
		return n, err
	}
	if m.tell != nil {
		m.tell(m.done, m.total)
	}
	return n, nil
}
