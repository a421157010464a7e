// Package sqlite stores Sortie's state in one SQLite file. It is the default of
// the local stack.
//
// Acknowledged writes survive kill -9 at any moment (WAL with synchronous=FULL:
// a commit returns after its fsync). A reader sees every change acknowledged
// before it started. A full disk, a lock of another program and a file of a
// newer version are errors that lose nothing.
//
//	Write ──┐                 one goroutine, one connection
//	Write ──┼─► queue ─► BEGIN · change · change · change · COMMIT ─► fsync
//	Write ──┘                 (each in its own savepoint)
//	Read  ────► one of a few connections, each on its own snapshot
//
// Changes that arrive during a commit share the next one, so many writers need
// few fsyncs and a single writer does not wait. A relaxed change, such as the tokens of an
// answer, is committed without an fsync: a crash of the process loses nothing of it, and one
// of the host at most those behind the last fsync.
//
// Feed keeps streams of records in the same file. The commit of an append notifies the
// waiting readers and gives them its records, because all writers are in this process. A row
// has several records of a batch; see rowsOf. The events of a commit wait in the outbox, as
// they are published, until the append that has them removes them in its commit.
//
// Limits of queries are written as "LIMIT 0 + ?". SQLite plans a query with "LIMIT ?" for
// the bound value, and prepares it again at each execution, which takes longer than most
// queries. A comparison for equality has the same effect if SQLite considers a plan that does
// not look it up in an index: in joins, in ranges, and where several indexes have the column.
// Hence "stream = 0 + ?", and a tenant is compared with a concatenation. A test executes each
// read twice.
//
// The package refuses a second process on the same file, a file of a newer
// version, and hosts without flock.
package sqlite
