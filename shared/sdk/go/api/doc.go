// Package api has the objects of the HTTP API as types: requests, answers, events.
//
// A field that may be absent has a zero value that is not sent, or is a pointer where that
// value has a meaning of its own: Limit: new(int64(10)). Members that a later server adds are
// ignored, and enumerations may have values without a constant.
package api
