// Package archive converts descriptions of archival units to entities. It generates their
// components (pinax.json, cheimarros.json, description.md, a finding-aid note), their tree, and
// their PIs.
//
// A Unit has the facts of a catalog or a finding aid, already cleaned with Clean and
// CutPlaceholder. A Tree stores units of some hundred to a few thousand bytes each, and
// computes all other bytes on request.
//
// The same units always give the same bytes, PIs and CIDs. A PI depends only on the identifier
// of the unit, so that a corrected description keeps its PI. Entities do not say more than
// their units. An estimated day becomes a year, an unknown participant is not named, and the
// note says that it is generated.
package archive
