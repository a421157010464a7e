// Package record parses an archive entity: its manifest and its components.
//
// It is pure: other packages fetch and verify the bytes. A component that cannot be parsed is
// omitted from the Entity and named in Entity.Faults. The others are not affected.
//
// Long texts (the narrative, OCR) are not kept in memory: a Text refers to its bytes and
// decodes them while it is read.
//
// The package supports version 0 of the entity API and these later shapes: `id` for `pi`, `cid`
// for `manifest_cid`, links as objects, and the answers for merged and deleted entities, which
// are 200 without components.
package record
