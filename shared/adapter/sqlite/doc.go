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
// Changes that arrive during a commit share the next one, so many writers need few fsyncs and a
// single writer does not wait. A relaxed change, such as the tokens of an answer, is committed
// without an fsync. A crash of the process loses no relaxed change. A crash of the host loses
// at most those after the last fsync.
//
// Feed stores streams of records in the same file. The commit of an append passes its records
// to the waiting readers, because all writers are in this process. A row has several records of
// a batch; see rowsOf. The outbox has the events of each commit in their published form. The
// append of the events removes them from the outbox in the same commit.
//
// Limits of queries are written as "LIMIT 0 + ?". SQLite plans a query with "LIMIT ?" for the
// bound value and prepares it again at each execution, which takes longer than most queries. An
// equality has the same effect if SQLite considers a plan without an index for it: in joins, in
// ranges, and if several indexes have the column. Hence "stream = 0 + ?", and a tenant is
// compared with a concatenation. A test executes each read twice.
//
// The package refuses a second process on the same file, a file of a newer
// version, and hosts without flock.
package sqlite
