// Package document represents JSON values as Step Functions does: objects keep
// the order of their members and numbers keep their digits.
//
// A value is nil, bool, string, json.Number, []any or *Object. Values in a
// document are immutable: a change copies the containers on its path and shares
// everything else, so passing a state's output to the next state is free.
//
// Parse accepts every valid JSON text of at most MaxDepth levels, and reports
// the offset of the first mistake otherwise.
package document
