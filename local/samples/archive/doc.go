// Package archive converts descriptions of archival units to entities: the
// components (pinax.json, cheimarros.json, description.md, a finding-aid note),
// their tree, and their PIs.
//
// A Unit holds the facts of a catalog or a finding aid, already cleaned with
// Clean, CutPlaceholder and Party. A Tree holds units, of some hundred bytes to
// a few thousand each, and computes all bytes on request.
//
// The same units always give the same bytes, PIs and CIDs. A PI depends on the
// unit's identifier alone, so a corrected description keeps its PI. Entities
// claim no more than their units: an estimated day becomes a year, an unknown
// participant is not named, and the note says that it is generated.
package archive
