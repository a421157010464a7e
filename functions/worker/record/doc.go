// Package record is one archive entity as the export reads it: its manifest,
// and what its components say.
//
// It is pure: it gets bytes that were fetched and verified elsewhere, and it
// never fails as a whole. A part that cannot be understood is left out and
// named in Entity.Faults, so that a broken component costs an entity that
// component and nothing else.
//
// Long texts (the narrative, OCR) are never held in memory: a Text points at
// its bytes and decodes them while it is read.
//
// It understands the entity API's version 0 and, where they matter, its later
// shapes: `id` for `pi`, `cid` for `manifest_cid`, links as objects, and the
// answers for merged and deleted entities, which are 200 without components.
package record
