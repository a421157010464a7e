package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite"
)

// riverQueue is River on SQLite. Its server is the process that works; clients insert jobs into
// the same file.
type riverQueue struct {
	process *process
	db      *sql.DB
	client  *river.Client[*sql.Tx]
}

// riverWorkers is how many programs run at once, as many as Sortie's default.
const riverWorkers = 16

type programArgs struct {
	Command []string `json:"command"`
}

func (programArgs) Kind() string { return "program" }

type programWorker struct {
	river.WorkerDefaults[programArgs]
}

func (programWorker) Work(ctx context.Context, job *river.Job[programArgs]) error {
	return exec.CommandContext(ctx, job.Args.Command[0], job.Args.Command[1:]...).Run()
}

func openRiver(folder string, config *river.Config) (*sql.DB, *river.Client[*sql.Tx], error) {
	db, err := sql.Open("sqlite", filepath.Join(folder, "river.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(60000)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	client, err := river.NewClient(riversqlite.New(db), config)
	return db, client, err
}

func riverServer(ctx context.Context, folder string) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, programWorker{})
	_, client, err := openRiver(folder, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}}, Workers: workers,
		FetchCooldown: 50 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "river.ready"), nil, 0o600); err != nil {
		return err
	}
	<-client.Stopped()
	return nil
}

func (*riverQueue) name() string       { return "River" }
func (r *riverQueue) server() *process { return r.process }

func (r *riverQueue) stop() {
	r.process.stop()
	r.db.Close()
}

func (r *riverQueue) start(ctx context.Context, folder string) error {
	if r.db == nil {
		var err error
		if r.db, r.client, err = openRiver(folder, &river.Config{}); err != nil {
			return err
		}
		migrator, err := rivermigrate.New(riversqlite.New(r.db), &rivermigrate.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			return err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ready := filepath.Join(folder, "river.ready")
	_ = os.Remove(ready)
	if r.process, err = launch(folder, nil, self, "river-server", folder); err != nil {
		return err
	}
	return until(ctx, "river works", time.Minute, func() bool { _, err := os.Stat(ready); return err == nil })
}

func (r *riverQueue) submit(ctx context.Context, w work, id string) (string, error) {
	path, args := w.command(id)
	inserted, err := r.client.Insert(ctx, programArgs{append([]string{path}, args...)}, nil)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(inserted.Job.ID, 10), nil
}

func (r *riverQueue) wait(ctx context.Context, run string) error {
	id, err := strconv.ParseInt(run, 10, 64)
	if err != nil {
		return err
	}
	for {
		job, err := r.client.JobGet(ctx, id)
		switch {
		case err != nil:
			return err
		case job.State == rivertype.JobStateCompleted:
			return nil
		case job.FinalizedAt != nil:
			return fmt.Errorf("job %s ended as %s", run, job.State)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
