// Package spec defines what a client or a job requests of a run: its work, its limits and retries,
// its priority, and the content of notices about it. Package run has what becomes of it.
package spec

import (
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/domain/fan"
)

// Work is the task of a run's worker.
type Work struct {
	// Kind is KindExport, KindJob or KindInference.
	Kind   string `json:"kind"`
	Format string `json:"format"`
	PI     string `json:"pi"`
	// Options is the JSON object for the worker, as accepted.
	Options json.RawMessage `json:"options"`
	// Image is the image of the machine; empty for an export, which uses that of the
	// deployment.
	Image string `json:"image"`
	// Program is the work of kind job; nil for other kinds.
	Program *Program `json:"program,omitempty"`
	// Inference is the work of kind inference; nil for other kinds.
	Inference *Inference `json:"inference,omitempty"`
	// Fan makes the run a parent of children that do the work; nil for other runs.
	Fan *fan.Spec `json:"fan,omitempty"`
	// Resources are the required resources of the machine.
	Resources Resources `json:"resources,omitzero"`
	// PodSpec is a Kubernetes pod specification (a JSON object); empty without one.
	PodSpec json.RawMessage `json:"podSpec,omitempty"`
	// BucketCredentials says how the worker reaches the uploads bucket. Empty means
	// BucketEnvelope for a program, and the setting of the deployment for an export.
	BucketCredentials string `json:"bucketCredentials,omitempty"`
}

// The values of Work.BucketCredentials.
const (
	// BucketVariables gives the worker the key pair of all workers, which the export contract
	// requires (EC-10.4), and presigned URLs in its envelope.
	BucketVariables = "variables"
	// BucketEnvelope gives the worker only the presigned URLs.
	BucketEnvelope = "envelope"
)

// Resources describe a machine. Zero values mean those of the deployment.
type Resources struct {
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int    `json:"memoryMB,omitempty"`
	Region   string `json:"region,omitempty"`
}

// ContentType returns the media type of the work's output.
func (w Work) ContentType() string {
	switch {
	case w.Fan != nil:
		return "application/jsonl"
	case w.Kind == KindExport:
		return "application/xml" // every export format is XML
	case w.Program != nil && w.Program.Output != nil && w.Program.Output.ContentType != "":
		return w.Program.Output.ContentType
	}
	return "application/octet-stream"
}
