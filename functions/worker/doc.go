// Package worker is the export worker: the program of a container image that
// knows only its environment. It reads an entity and, if asked, its
// descendants from the entity API, writes one XML document, puts it into the
// bucket under exports/{TASK_ID}/, reports what came of it, and ends.
//
// With TASK_ENVELOPE it speaks the worker contract: started, heartbeats with
// its progress, completed; a cancel ends it. Without, it knows the export
// contract alone and calls CALLBACK_URL once. Without R2 credentials the
// document goes to the address in the envelope.
//
//	SOURCE_API_URL ──manifests, components──▶ readers (parallelBatchSize)
//	                                             │  in the order of the walk
//	                                             ▼
//	                     temporary file ◀── format (mods, dc, marcxml)
//	                             │
//	                             ▼
//	                      R2 bucket ──▶ completed, or CALLBACK_URL ──▶ exit
//
// # What it promises
//
// The walk is breadth-first; children come in the order of children_pi; an
// entity is written once, where it was found first. The root has depth 0, and
// children are followed while the depth is less than maxDepth. The same
// entities give the same bytes, however the network behaves.
//
// Memory does not grow with the collection, but for some 45 bytes that name
// each entity: long texts are streamed, everything else is bounded, and
// components wait on disk in files without names, which no way of ending
// leaves behind.
//
// The exit code is the export's: 0 when the output is in the bucket (even if
// the report was not accepted), 1 when not, and 143 after a cancel and after
// SIGTERM. SIGTERM without a cancel is not reported: to the orchestrator an
// error is final, and that the machine ended says enough. CALLBACK_URL and the
// envelope are secrets and never reach a log.
//
// # What becomes of ill entities
//
// Three figures are counted: exported (records in the document), incomplete
// (those of them that lack something, which a note in the record names) and
// failed (entities that are not in the document).
//
//	malady                           outcome
//	cycle, repeated child            the entity is written once; not counted as anything
//	one-sided link                   what a parent lists is exported, whatever the child says; a
//	                                 child that only names its parent is not found
//	child that is no PI              left out, its parent is incomplete
//	404 for an entity                failed; the root: the export fails
//	merged or deleted entity         failed, not followed; the root: the export fails
//	answer that is no manifest       asked for 3 times, then failed; the root: the export fails
//	503, 5xx, 429, no connection,    asked for 6 times, and if the source as a whole is down, again
//	slow or truncated answer         when it is back, for 2 minutes at most; then failed, or
//	                                 incomplete if it was a component; the root (8 times): the
//	                                 export fails; 32 entities in a row: the export fails
//	no pinax                         incomplete: the record says so and has what else is known
//	broken pinax (not JSON,          incomplete, in the same way
//	not an object)
//	pinax without a title            incomplete; the title says so
//	pinax or graph over 4 MiB,       incomplete, without that component
//	other component over 256 MiB
//	404 for a component              incomplete, without it
//	bytes that do not match the CID  asked for 3 times, then incomplete, without them. Only a CIDv1
//	                                 in base 32 of raw bytes and sha2-256 can be checked; others
//	                                 (UnixFS, CBOR, CIDv0) are taken as they come
//	broken *.ref.json                incomplete; the component itself is listed
//	empty or blank OCR               no note; complete
//	control bytes, bytes that are    U+FFFD in the document; complete
//	no UTF-8
//
// # What it refuses
//
// A document without a record. An environment that is not valid, naming all
// that is wrong with it at once. Options that it does not know.
package worker
