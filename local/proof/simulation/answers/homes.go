package answers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

// retention is longer than a simulation.
const retention = 400 * 24 * time.Hour

// home is the storage of the processes.
type home interface {
	// open returns the store and the streams for one process.
	open(ctx context.Context) (port.Store, port.AnswerFeed, error)
	close() error
}

func (w *world) newHome(ctx context.Context) (home, error) {
	if w.deployed() {
		return newAWS(ctx, w)
	}
	return newLocal(ctx, w)
}

// local is SQLite, on a file system in memory where possible: processes crash here, but never
// the host.
type local struct {
	w   *world
	dir string
	db  *sqlite.DB
}

func newLocal(ctx context.Context, w *world) (*local, error) {
	dir, err := os.MkdirTemp("/dev/shm", "sortie-answers-")
	if err != nil {
		dir, err = os.MkdirTemp("", "sortie-answers-")
	}
	if err != nil {
		return nil, err
	}
	db, err := sqlitetest.Open(ctx, filepath.Join(dir, "sortie.db"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &local{w, dir, db}, nil
}

func (h *local) open(ctx context.Context) (port.Store, port.AnswerFeed, error) {
	store, err := sqlite.NewStore(ctx, h.db, bubble)
	if err != nil {
		return nil, nil, err
	}
	feed, err := sqlite.NewFeed(ctx, h.db, sqlite.FeedConfig{Clock: bubble, Retention: retention, Random: func() uint64 { return h.w.roll("epoch").Uint64() }})
	return store, feed, err
}

func (h *local) close() error { return errors.Join(h.db.Close(), os.RemoveAll(h.dir)) }

// aws is DynamoDB's adapter on an in-process fake of the service.
type aws struct {
	w  *world
	db *awsfake.DynamoDB
}

const table = "sortie"

func newAWS(ctx context.Context, w *world) (*aws, error) {
	h := &aws{w: w, db: awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: bubble, Seed: w.seed})}
	return h, awsfake.CreateTable(ctx, h.db.AWS(), table)
}

func (h *aws) open(context.Context) (port.Store, port.AnswerFeed, error) {
	store, err := dynamo.New(h.db.Direct(), dynamo.Config{
		Table: table, Clock: bubble, Random: func() uint64 { return h.w.roll("dynamo").Uint64() }, Concurrency: 1,
	})
	if err != nil {
		return nil, nil, err
	}
	feed, err := dynamo.NewAnswers(store, dynamo.FeedConfig{Retention: retention, WaitInterval: 200 * time.Millisecond})
	return store, feed, err
}

func (h *aws) close() error { return nil }
