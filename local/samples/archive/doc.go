// Package archive turns descriptions of archival units into entities: the
// components (pinax.json, cheimarros.json, description.md, a finding-aid note),
// the tree that they hang in, and the PIs by which they are known.
//
// A Unit is facts as a catalog or a finding aid states them, already free of the
// mistakes of its source; Clean, CutPlaceholder and Party are the tools for that.
// A Tree holds units, some hundred bytes to a few thousand each, and computes
// all bytes when they are asked for.
//
// It promises that one set of units always gives the same bytes, PIs and CIDs,
// and that a PI depends on the unit's identifier alone: a corrected description
// keeps its PI. It claims no more than its units do: an estimated day becomes a
// year, a participant who is not known becomes no name, and the note that it
// writes says what it is.
package archive
