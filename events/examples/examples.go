// Package examples has an event of each type as a deployment has published it, TYPE.json,
// and one that is invalid, TYPE.invalid.json. The suite compares the valid ones with the
// events of each deployment that it tests.
package examples

import "embed"

// Files are the examples, by their names.
//
//go:embed *.json
var Files embed.FS
