package ui

import "net/url"

// RunPath returns the address of a run, below the console.
func RunPath(id string) string { return "runs/" + url.PathEscape(id) }

// Segment returns a segment of a path.
func Segment(text string) string { return url.PathEscape(text) }

// ArtifactPath returns the address of an artifact, below the console.
func ArtifactPath(id string) string { return "artifacts/" + url.PathEscape(id) }

// EventPath returns the address of an event, below the console.
func EventPath(cursor string) string { return "events/" + url.PathEscape(cursor) }

// PoolPath returns the address of a pool, below the console.
func PoolPath(id string) string { return "pools/" + url.PathEscape(id) }

// JobPath returns the address of a job, below the console.
func JobPath(id string) string { return "jobs/" + url.PathEscape(id) }

// WebhookPath returns the address of a webhook, below the console.
func WebhookPath(id string) string { return "webhooks/" + url.PathEscape(id) }
