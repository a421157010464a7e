// Package stream reads the event streams of tenants: pages of them, and readers that
// follow them.
//
//	feed ─▶ cache: read, parsed and rendered once ─▶ Page    a page of a request
//	  └──── topic: one Wait for all readers ──────▶ Follow  messages of a reader
//
// A Cursor is a place in a stream. A reader that continues at the cursor of the last
// message that it got receives each later event, in order. A cursor that the stream does
// not have, because retention has removed what follows it or because the stream was lost
// and begun again, is a gap: Page refuses it, and Follow reports it as its first event
// and continues with the oldest event.
//
// Follow sends each reader its own messages, as fast as the reader takes them, and keeps
// nothing for it but its cursor. It ends each stream after a random time, so that
// readers do not come back all at once.
//
// Where no process runs while readers wait, a gateway keeps their connections:
//
//	gateway ──▶ Reception ──▶ connections, with the cursors of their readers
//	writer  ──▶ Waker ──▶ queue of tenants ──▶ Pusher ──▶ gateway
//
// The writer of a stream wakes its tenant after each append, if the tenant has a connection,
// and a sweep wakes all of them once a minute. A Pusher sends the messages that Follow would
// send, from the cursor of each connection, and stores the cursor behind them.
package stream
