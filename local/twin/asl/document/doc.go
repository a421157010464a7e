// Package document holds JSON values the way Step Functions treats them: the
// members of an object keep their order and a number keeps the digits that it
// was written with.
//
// A value is one of nil, bool, string, json.Number, []any and *Object. Values
// are never changed once they are part of a document: whoever wants another
// one copies what differs and shares the rest. That makes passing a state's
// output on to the next state free.
//
// Parse promises a value for every valid JSON text of at most MaxDepth levels
// and refuses everything else, with the offset of the first mistake.
package document
