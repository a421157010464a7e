// Package sqlite keeps Sortie's state in one SQLite file: the embedded default
// of the local stack.
//
// It promises that what was acknowledged survives kill -9 at any moment (WAL
// with synchronous=FULL: a commit returns after its fsync), that a reader sees
// every change that was acknowledged before it began, and that a full disk, a
// foreign lock or a newer file is a clear error which loses nothing.
//
//	Write ──┐                 one goroutine, one connection
//	Write ──┼─► queue ─► BEGIN · change · change · change · COMMIT ─► fsync
//	Write ──┘                 (each in a savepoint of its own)
//	Read  ────► one of a few connections, each on its own snapshot
//
// Changes that arrive while a commit is under way share the next one, so many
// writers cost few fsyncs and one writer waits for nobody.
//
// It refuses a second process on the same file, a file that a newer program
// has written, and files on hosts without flock.
package sqlite
