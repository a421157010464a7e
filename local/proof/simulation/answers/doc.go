// Package answers simulates inference tasks. The real use cases, dispatchers, stores and
// streams run under a virtual clock, with faulty engines, clients and processes. A dispatcher
// has many goroutines, so a world runs in a bubble of testing/synctest, whose time advances
// when all of them wait. The worlds of the parent package have one thread. The seed determines
// the world and the fault of each call, but not the order of goroutines that become runnable at
// the same time. A failing seed fails again in nearly all cases.
//
//	clients ──► Inference, Budgets ──► faults ──► SQLite, or DynamoDB's adapter on awsfake
//	readers ◄── Follow ◄───────────── faults ◄── streams of the Feed
//	            Dispatcher ─────────► replicas: mock engines
//
// In worlds of odd seeds one process runs everything, and another one starts when it is killed.
// In the others two or three processes share the store, each with a dispatcher, and clients
// call any of them. A process is killed before or after any call of the store, a stream or an
// engine. From then on its calls have no effect. Calls are slow, lost, or applied and reported
// as failed, and the contexts of clients end. In every third world only engines and clients
// fail.
//
// An engine refuses because it is busy or loading, fails before its first piece, breaks the
// connection, ends without its final event, sends an error, hangs, sends a piece twice, answers
// slowly, and keeps the slot of a request that its caller has closed. For a while it refuses
// everything, with 429, with 500 or without an answer, and does not report its health.
//
// Clients submit with idempotency keys, repeatedly, some to another process. They request
// completions, embeddings and rankings, in sessions and projects. They cancel at any time. They
// follow streams on connections that break, and continue after the last event received. Callers
// that wait for their answer disconnect, during the stream or before. The operator sets limits
// of budgets, deletes sessions, and drains and resumes the pool.
//
// Two of five completions are calls of a tool, which few tokens cut off, and one of five begins with
// reasoning (forms.go).
//
// Texts have up to four answers and an image, some as an artifact. Some requests are so large that they
// are objects. Some answers are deleted, while they are generated or later (requests.go).
//
// In half of the worlds the pool has a fallback with another model and another price. A task uses it
// at most once, for a reason of the pool, and never after a part of its answer (fallbacks.go).
//
// Some tasks request a third model. A share of the others is split to the model of the fallback, and a
// share is copied to the third model. In half of the worlds the context of the first model is too short
// for some prompts. An oracle says where each task should begin, and which are copied; copies change
// nothing but the usage of their own key (routes.go).
//
// In two of three worlds the answers of the tenant are stored for some days. When they have passed, the
// streams, prompts and transcripts are deleted, and the usage is not (deletion.go).
//
// The state is checked while all goroutines wait. The accounts hold and have spent the sums
// over the runs. No initial limit is exceeded, and no more runs have a slot than the pool has
// (state.go). A task has no slot, and no request at an engine, for longer than the grace of 5
// seconds after the end of its stream or attempt (slots.go). A process never has more requests
// at a replica than the replica has slots, and sends none to a replica that keeps one of its
// closed requests (engines.go). A reader gets each event once, in order, without a gap, and
// nothing after a terminal event. An acknowledged cancel has ended the stream (readers.go,
// clients.go). Faults end after some minutes. Then every accepted task ends within a bound.
// Each stream has one terminal record, the last one, which agrees with its run. The accounts
// equal the usage in the streams, to the token. No reservation, slot or request is left
// (check.go). An hour later no ticket is left, each object of a request belongs to a run, and of a deleted
// answer only its usage is left (requests.go).
package answers
