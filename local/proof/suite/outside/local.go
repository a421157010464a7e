package outside

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/twin/stack"
)

// app is where the local stack has its machines.
const app = "arke-mods-export-worker"

// OfStack gives the views of a local stack, with the credentials that its data
// folder holds.
func OfStack(at stack.Addresses) (Machines, Buckets, error) {
	text, err := os.ReadFile(filepath.Join(at.Data, "stack.json"))
	if err != nil {
		return Machines{}, Buckets{}, fmt.Errorf("cannot read the stack's keys: %w", err)
	}
	var memory struct {
		Secrets map[string]string `json:"secrets"`
	}
	if err := json.Unmarshal(text, &memory); err != nil {
		return Machines{}, Buckets{}, fmt.Errorf("cannot read the stack's keys: %w", err)
	}
	machines := Machines{URL: at.Machines, Token: memory.Secrets["machines-token"], App: app}
	return machines, Buckets{
		Endpoint: at.S3, Region: "auto", KeyID: memory.Secrets["s3-owner-id"], Secret: memory.Secrets["s3-owner-secret"],
		Uploads: at.Bucket, Accepted: at.Bucket + "-kept",
	}, nil
}
