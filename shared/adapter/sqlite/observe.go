package sqlite

import (
	"reflect"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
)

// Statement has the counters of one execution of a statement. Unlike its duration, they are the
// same on any machine.
type Statement struct {
	Query string
	// Steps are instructions of SQLite's virtual machine. Scanned are the rows of scans of whole
	// tables, and Sorts the sorts without an index.
	Steps, Scanned, Sorts int64
	// Pages are the lookups of pages in the cache, whether they were in it or not.
	Pages int64
}

// Observe makes each statement that ends from now on call observer, which must be safe for
// concurrent use. Programs that measure use it. nil ends it.
func (d *DB) Observe(observer func(Statement)) {
	if observer == nil {
		d.observer.Store(nil)
		return
	}
	d.observer.Store(&observer)
}

// observing returns the observer, or nil.
func (d *DB) observing() func(Statement) {
	if o := d.observer.Load(); o != nil {
		return *o
	}
	return nil
}

// observed reads and resets the counters of a statement.
func observed(stmt *sqlite.Stmt, query string) Statement {
	tls := threads.Get().(*libc.TLS) //nolint:forcetypeassert // see threads
	defer threads.Put(tls)
	at := reflect.ValueOf(stmt).Elem()
	handle, conn := uintptr(at.FieldByName("stmt").Uint()), uintptr(at.FieldByName("conn").Elem().FieldByName("conn").Uint())
	counter := func(of int32) int64 { return int64(lib.Xsqlite3_stmt_status(tls, handle, of, 1)) }
	s := Statement{
		Query: query, Steps: counter(lib.SQLITE_STMTSTATUS_VM_STEP),
		Scanned: counter(lib.SQLITE_STMTSTATUS_FULLSCAN_STEP), Sorts: counter(lib.SQLITE_STMTSTATUS_SORT),
	}
	values := tls.Alloc(8)
	defer tls.Free(8)
	for _, of := range []int32{lib.SQLITE_DBSTATUS_CACHE_HIT, lib.SQLITE_DBSTATUS_CACHE_MISS} {
		if lib.Xsqlite3_db_status(tls, conn, of, values, values+4, 1) == lib.SQLITE_OK {
			s.Pages += int64(libc.AtomicLoadPInt32(values))
		}
	}
	return s
}

// threads has the state that SQLite's functions need from their caller.
var threads = sync.Pool{New: func() any { return libc.NewTLS() }}
