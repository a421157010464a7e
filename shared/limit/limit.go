// Package limit declares the ranges of the values that clients send. The API, the
// worker and the tests read each range from here.
package limit

// ExportDepth is the greatest maxDepth of an export: how far below its root a
// recursive export goes. 0 is the root alone.
const ExportDepth = 100

// ExportBatch is the greatest parallelBatchSize of an export: how many entities
// its worker reads at once. The least is 1.
const ExportBatch = 100
