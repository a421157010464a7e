package outside

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// app is the app of the local stack's machines.
const app = "arke-mods-export-worker"

// LocalStack returns clients for the machines API and object store of a local stack, with the
// credentials from its data folder.
func LocalStack(at stack.Addresses) (Machines, Buckets, error) {
	text, err := os.ReadFile(filepath.Join(at.Data, "stack.json"))
	if err != nil {
		return Machines{}, Buckets{}, fmt.Errorf("cannot read the stack's secrets: %w", err)
	}
	var stored struct {
		Secrets map[string]string `json:"secrets"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return Machines{}, Buckets{}, fmt.Errorf("cannot decode the stack's secrets: %w", err)
	}
	machines := Machines{URL: at.Machines, Token: stored.Secrets["machines-token"], App: app}
	return machines, Buckets{
		Endpoint: at.S3, Region: "auto", KeyID: stored.Secrets["s3-owner-id"], Secret: stored.Secrets["s3-owner-secret"],
		Uploads: at.Bucket, Accepted: limit.AcceptedBucket,
	}, nil
}
