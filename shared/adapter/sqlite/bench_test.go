package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// BenchmarkWrite changes two small rows per operation, each change durable
// before its writer continues.
func BenchmarkWrite(b *testing.B) {
	for _, writers := range []int{1, 50} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			ctx := context.Background()
			db, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "bench.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			err = db.Migrate(ctx, "bench", []string{
				`CREATE TABLE runs (id TEXT PRIMARY KEY, version INTEGER, body TEXT) STRICT, WITHOUT ROWID;
				 CREATE TABLE outbox (seq INTEGER PRIMARY KEY, body TEXT) STRICT;`,
			})
			if err != nil {
				b.Fatal(err)
			}
			before := db.Stats()
			var next atomic.Int64
			body := fmt.Sprintf("%0200d", 7)
			done := make(chan error, writers)
			b.ResetTimer()
			for range writers {
				go func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						id := fmt.Sprintf("run-%06d", i%5000)
						err := db.Write(ctx, func(tx *sqlite.Tx) error {
							if _, err := tx.Exec(`INSERT INTO runs VALUES (?, 1, ?)
								ON CONFLICT (id) DO UPDATE SET version = version + 1`, id, body); err != nil {
								return err
							}
							_, err := tx.Exec("INSERT INTO outbox (body) VALUES (?)", body)
							return err
						})
						if err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range writers {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			after := db.Stats()
			changes := float64(after.Changes - before.Changes)
			b.ReportMetric(changes/b.Elapsed().Seconds(), "changes/s")
			b.ReportMetric(changes/float64(after.Commits-before.Commits), "changes/commit")
			b.ReportMetric(float64(after.Rows-before.Rows)/changes, "rows/change")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "bench.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	err = db.Migrate(ctx, "bench", []string{`CREATE TABLE runs (id TEXT PRIMARY KEY, body TEXT) STRICT, WITHOUT ROWID;
		INSERT INTO runs VALUES ('one', 'body')`})
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var body string
			err := db.Read(ctx, func(tx *sqlite.Tx) error {
				return tx.QueryRow("SELECT body FROM runs WHERE id = ?", "one").Scan(&body)
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}
