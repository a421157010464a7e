// Package worker is the export worker, a program that is configured by its
// environment. It reads an entity and, for a recursive export, its descendants from
// the entity API, writes one XML document, stores it in the bucket under
// exports/{TASK_ID}/, reports the result, and exits.
//
// With TASK_ENVELOPE it implements the worker contract: started, heartbeats with
// progress, cancellation, completed. Without, it implements the export contract and
// calls CALLBACK_URL once. Without R2 credentials it stores the document at the
// envelope's output URL.
//
//	SOURCE_API_URL ──manifests, components──▶ readers (parallelBatchSize)
//	                                             │  in the order of the walk
//	                                             ▼
//	                     temporary file ◀── format (mods, dc, marcxml)
//	                             │
//	                             ▼
//	                      R2 bucket ──▶ completed, or CALLBACK_URL ──▶ exit
//
// # Guarantees
//
// The walk is breadth-first, with children in the order of children_pi. An entity is written
// once, at its first occurrence. The root has depth 0, and children are followed while the
// depth is less than maxDepth. The same entities give the same bytes, even if requests fail or
// are reordered.
//
// Memory grows by about 45 bytes for each entity. Long texts are streamed, everything else is
// limited, and components are buffered in unnamed files, which disappear with the process.
//
// The exit code is 0 if the output is in the bucket (even if the report was not
// accepted), 1 if not, and 143 after a cancel or SIGTERM. SIGTERM without a cancel
// request is not reported, because a reported error would be final. CALLBACK_URL and
// the envelope are secrets and are never logged.
//
// # Defective entities
//
// Three figures are counted: exported (records in the document), incomplete (records
// that lack something, which a note in the record names) and failed (entities that
// are missing from the document).
//
//	defect                           outcome
//	cycle, repeated child            the entity is written once; not counted as a defect
//	one-sided link                   a child that its parent lists is exported; one that only names
//	                                 its parent is not
//	malformed PI of a child          left out; the parent is incomplete
//	404 for an entity                failed; the root: the export fails
//	merged or deleted entity         failed, not followed; the root: the export fails
//	answer that is not a manifest    requested 3 times, then failed; the root: the export fails
//	503, 5xx, 429, no connection,    requested 6 times, and again after an outage of the whole
//	slow or truncated answer         source, within 2 minutes; then failed, or incomplete for a
//	                                 component; the root (8 times): the export fails; 32
//	                                 consecutive entities: the export fails
//	no pinax                         incomplete: the record says so and has everything else
//	broken pinax (not JSON,          incomplete, in the same way
//	not an object)
//	pinax without a title            incomplete; the title says so
//	pinax or graph over 4 MiB,       incomplete, without that component
//	other component over 256 MiB
//	404 for a component              incomplete, without it
//	bytes that do not match the CID  requested 3 times, then incomplete, without them. Only a CIDv1
//	                                 in base 32 of raw bytes and sha2-256 can be checked; others
//	                                 (UnixFS, CBOR, CIDv0) are not checked
//	broken *.ref.json                incomplete; the component itself is listed
//	empty or blank OCR               no note; complete
//	control characters, bytes that   U+FFFD in the document; complete
//	are not UTF-8
//
// The worker writes no document without a record, and refuses an invalid environment
// and unknown options with every problem at once.
package worker
