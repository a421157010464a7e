// Package examples contains a valid event of each type as published by a deployment, TYPE.json,
// and an invalid one, TYPE.invalid.json. The suite compares the valid ones with the events of
// each deployment that it tests.
package examples

import "embed"

// Files contains the examples, by file name.
//
//go:embed *.json
var Files embed.FS
