// Package stream reads the event streams of tenants, in pages or by following them.
//
//	feed ─▶ cache: read, parsed and rendered once ─▶ Page    a page of a request
//	  └──── topic: one Wait for all readers ──────▶ Follow  messages of a reader
//
// A Cursor is a place in a stream. A reader that continues at the cursor of its last message
// receives each later event, in order. A stream may not have a cursor, because retention has
// removed the events after it, or because the stream was lost and created again. That is a gap:
// Page refuses the cursor. Follow reports the gap as its first event and continues with the
// oldest event.
//
// Follow sends each reader its own messages, as fast as the reader receives them. It stores
// nothing for a reader but its cursor. It ends each stream after a random time, so that readers
// do not all reconnect at once.
//
// If no process runs while readers wait, a gateway keeps their connections:
//
//	gateway ──▶ Reception ──▶ connections, with the cursors of their readers
//	writer  ──▶ Waker ──▶ queue of tenants ──▶ Pusher ──▶ gateway
//
// The writer of a stream enqueues its tenant after each append, if the tenant has a connection.
// A sweep enqueues all connected tenants once a minute. A Pusher sends the messages that Follow
// would send, from the cursor of each connection, and then stores the new cursor.
package stream
