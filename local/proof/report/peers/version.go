package main

import (
	_ "embed"
	"os"
	"regexp"
)

//go:embed go.mod
var pinned string

// version returns the version of a peer that this module names.
func version(name string) string {
	if name == "Nomad" {
		return os.Getenv("NOMAD_VERSION")
	}
	path := map[string]string{
		"Temporal": "github.com/temporalio/cli", "River": "github.com/riverqueue/river",
		"NATS JetStream": "github.com/nats-io/nats-server/v2", "Mercure": "github.com/dunglas/mercure",
	}[name]
	match := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(path) + ` (v\S+)`).FindStringSubmatch(pinned)
	if path == "" || match == nil {
		return ""
	}
	return match[1]
}
